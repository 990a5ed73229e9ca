package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/features/record"
)

// compiledSchema is the schema as an editor loads it.
func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(madeSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validate returns what the schema, or the YAML parser, finds in a file.
func validate(t *testing.T, s *jsonschema.Schema, file string) error {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var document any
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		text, err := json.Marshal(document)
		if err != nil {
			return err
		}
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(instance); err != nil {
			return err
		}
	}
}

func TestSchemaTakesGoodDefinitions(t *testing.T) {
	s := compiledSchema(t)
	good, _ := filepath.Glob("testdata/good/*.yaml")
	shipped, _ := filesOf(hostFiles{}, "../../config/features") // without tests, which lie there too
	if len(good) == 0 || len(shipped) == 0 {
		t.Fatalf("found %d good and %d shipped files, want some of each", len(good), len(shipped))
	}
	for _, file := range append(good, shipped...) {
		if err := validate(t, s, file); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// unseen lists the bad definitions whose mistake is not in their shape: in references, expressions
// or one-line forms.
const unseen = "testdata/unseen_by_schema.txt"

func TestSchemaRefusesBadDefinitions(t *testing.T) {
	s := compiledSchema(t)
	files, _ := filepath.Glob("testdata/bad/*.yaml")
	var taken []string
	for _, file := range files {
		if validate(t, s, file) == nil {
			taken = append(taken, filepath.Base(file))
		}
	}
	if *update {
		if err := os.WriteFile(unseen, []byte(strings.Join(taken, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(unseen)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Fields(string(want)), taken); diff != "" {
		t.Errorf("accepted by the schema (-%s +now), rewritten by go test -update:\n%s", unseen, diff)
	}
	if len(taken) == len(files) {
		t.Error("the schema refuses nothing")
	}
}

func TestSchemaInTheDocumentation(t *testing.T) {
	const file = "../../docs/schema.json"
	if *update {
		if err := os.WriteFile(file, madeSchema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(madeSchema()), "\n")); diff != "" {
		t.Errorf("the schema (-%s +now), rewritten by go test -update:\n%s", file, diff)
	}
}

// The schema has exactly the keys of the loader.
func TestSchemaHasTheLoadersKeys(t *testing.T) {
	var s struct {
		Properties map[string]any
		Defs       map[string]struct {
			Properties map[string]any
			AnyOf      []struct{ Properties map[string]any }
		} `json:"$defs"`
	}
	if err := json.Unmarshal(madeSchema(), &s); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		what       string
		keys       []string
		properties map[string]any
	}{
		{"the file", sectionKeys, s.Properties},
		{"stream", streamKeys, s.Defs["stream"].Properties},
		{"topic of a stream", topicKeys, s.Defs["stream"].Properties["topics"].(map[string]any)["anyOf"].([]any)[2].(map[string]any)["additionalProperties"].(map[string]any)["properties"].(map[string]any)},
		{"enrich", enrichKeys, s.Defs["enrich"].Properties},
		{"timestamp", timestampKeys, s.Defs["timestamp"].AnyOf[1].Properties},
		{"field", fieldKeys, s.Defs["field"].Properties},
		{"long form", longFormKeys(), s.Defs["longForm"].Properties},
		{"window", windowKeys, s.Defs["window"].AnyOf[1].Properties},
		{"derived feature", derivedKeys, s.Defs["derived"].Properties},
		{"macro in the long form", longFormKeys(), s.Defs["macro"].AnyOf[1].Properties},
		{"macro of a derived feature", derivedKeys, s.Defs["macro"].AnyOf[2].Properties},
	} {
		var got []string
		for key := range test.properties {
			got = append(got, key)
		}
		slices.Sort(got)
		if diff := cmp.Diff(slices.Sorted(slices.Values(test.keys)), got); diff != "" {
			t.Errorf("keys of %s (-loader +schema):\n%s", test.what, diff)
		}
	}
}

// The page about formats names each of them and its options.
func TestFormatsInTheDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range record.Formats {
		var options []string
		for _, o := range f.Options {
			options = append(options, "`"+o.Name+"`")
		}
		row := "| `" + f.Name + "` | " + f.Describes
		if _, after, ok := strings.Cut(string(page), row); !ok || !strings.Contains(strings.SplitN(after, "\n", 2)[0], strings.Join(options, ", ")) {
			t.Errorf("docs/formats.md has no row that begins with %q and lists the options %s", row, strings.Join(options, ", "))
		}
	}
}
