package weir_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// module begins the paths of all packages.
const module = "github.com/weir-stream/weir/"

// room is a package: its folder, the packages of Weir that it imports, and its production files.
type room struct {
	folder  string
	imports []string
	files   []string
}

// rooms are all packages but the root.
func rooms(t *testing.T) (list []room) {
	t.Helper()
	const format = `{{.ImportPath}}|{{join .Imports " "}}|{{join .GoFiles " "}}`
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", format, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		folder, below := strings.CutPrefix(fields[0], module)
		if !below {
			continue
		}
		r := room{folder: folder, files: strings.Fields(fields[2])}
		for _, path := range strings.Fields(fields[1]) {
			if folder, ours := strings.CutPrefix(path, module); ours {
				r.imports = append(r.imports, folder)
			}
		}
		list = append(list, r)
	}
	return list
}

// ofProduction are the packages that the binary is made of: not those for tests and benchmarks only.
func ofProduction(t *testing.T) []room {
	return slices.DeleteFunc(rooms(t), func(r room) bool {
		for _, f := range []string{"bench", "docs", "integration_test", "internal/model", "internal/testkit", "store/storetest"} {
			if r.folder == f || strings.HasPrefix(r.folder, f+"/") {
				return true
			}
		}
		return false
	})
}

// floors are the lines of the picture of docs/design.md, from the highest, each with its packages.
func floors(t *testing.T) (list [][]string) {
	t.Helper()
	text, err := os.ReadFile("docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, picture, ok := strings.Cut(string(text), "imports only from the lines below it:\n\n```\n")
	if !ok {
		t.Fatal("docs/design.md has no picture of the imports")
	}
	picture, _, _ = strings.Cut(picture, "```")
	for line := range strings.Lines(picture) {
		list = append(list, strings.Fields(line))
	}
	return list
}

// The picture in docs/design.md is what the imports are.
func TestImportsFollowTheDrawnLayers(t *testing.T) {
	floorOf := map[string]int{}
	for n, floor := range floors(t) {
		for _, folder := range floor {
			floorOf[folder] = n
		}
	}
	drawnOnly := maps.Clone(floorOf)
	for _, r := range ofProduction(t) {
		floor, drawn := floorOf[r.folder]
		if !drawn {
			t.Errorf("docs/design.md does not draw %s", r.folder)
		}
		for _, imported := range r.imports {
			if n, drawn := floorOf[imported]; drawn && n <= floor {
				t.Errorf("%s imports %s, which docs/design.md does not draw below it", r.folder, imported)
			}
		}
		delete(drawnOnly, r.folder)
	}
	for folder := range drawnOnly {
		t.Errorf("docs/design.md draws %s, which does not exist", folder)
	}
}

// A layout is a file and a row: what else depends on it is a column of the table, not a test of its name elsewhere.
func TestOnlyStateNamesLayouts(t *testing.T) {
	text, err := os.ReadFile("state/layout.go")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "// The layouts.\nconst (\n")
	block, _, _ = strings.Cut(block, "\n)")
	var names []string
	for line := range strings.Lines(block) {
		names = append(names, strings.Fields(line)[0])
	}
	if len(names) < 10 {
		t.Fatalf("state/layout.go has the layouts %q", names)
	}
	named := regexp.MustCompile(`\bstate\.(` + strings.Join(names, "|") + `)\b`)
	for _, r := range ofProduction(t) {
		if r.folder == "state" || strings.HasPrefix(r.folder, "state/") {
			continue
		}
		for _, file := range r.files {
			text, err := os.ReadFile(filepath.Join(r.folder, file))
			if err != nil {
				t.Fatal(err)
			}
			if found := named.Find(text); found != nil {
				t.Errorf("%s/%s names the layout %s: give state.layout a column for the difference", r.folder, file, found)
			}
		}
	}
}

// Every package says what it is for: docs/design.md does not repeat it.
func TestEveryPackageIsDescribed(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{if .GoFiles}}{{.ImportPath}}|{{.Doc}}{{end}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		path, doc, _ := strings.Cut(strings.TrimSpace(line), "|")
		if path != "" && doc == "" {
			t.Errorf("%s has no package comment", path)
		}
	}
}

// `go install …/cmd/weir@version` refuses a module whose go.mod has replace or exclude directives.
func TestTheModuleCanBeInstalled(t *testing.T) {
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if word, _, _ := strings.Cut(line, " "); word == "replace" || word == "exclude" {
			t.Errorf("go.mod has a line that keeps `go install` from it: %s", line)
		}
	}
}

// A tag of an action can be moved by whoever takes its repository over; a commit cannot.
func TestActionsArePinned(t *testing.T) {
	files, err := filepath.Glob(".github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	pinned := regexp.MustCompile(`^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, used := range regexp.MustCompile(`uses: (.*)`).FindAllStringSubmatch(string(text), -1) {
			if !pinned.MatchString(used[1]) {
				t.Errorf("%s: %s is not pinned to a commit, with its version behind it", file, used[1])
			}
		}
	}
}

// Whoever upgrades reads in the changelog which layouts the version has.
func TestChangelogNamesTheLayouts(t *testing.T) {
	number := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`(?m)^const format = (\d+)$`).FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s does not say its format", file)
		}
		return string(found[1])
	}
	text, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	want := "The layout in Redis is " + number("store/redis/store.go") + ", in Ignite " + number("store/values/store.go") + "."
	if !strings.Contains(string(text), want) {
		t.Errorf("CHANGELOG.md does not say %q", want)
	}
}
