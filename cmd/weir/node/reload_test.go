package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
)

const (
	reloadStream = "streams:\n  login: {topic: logins, timestamp: {path: t, unit: ms}, fields: {user_id: string}}\nfeatures:\n"
	one          = reloadStream + "  one: COUNT(7d, login, user_id)\n"
	two          = reloadStream + "  one: COUNT(7d, login, user_id)\n  two: COUNT(1d, login, user_id)\n"
	bad          = reloadStream + "  one: COUNT(7d, login, device)\n  two: CONT(1d, login, user_id)\n"
)

// watched is a reloader with a fake clock.
type watched struct {
	*reloader
	t       *testing.T
	file    string
	clock   time.Time
	log     bytes.Buffer
	metrics *prometheus.Registry
	takes   []string // versions
	refusal error    // of take
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func watch(t *testing.T, file string) *watched {
	t.Helper()
	r, err := definition.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{t: t, file: file, clock: time.UnixMilli(1532520000000), metrics: prometheus.NewRegistry()}
	take := func(_ context.Context, r *features.Registry) error {
		w.takes = append(w.takes, r.Version())
		return w.refusal
	}
	w.reloader = newReloader([]string{file}, r, take, slog.New(slog.NewTextHandler(&w.log, nil)), w.metrics)
	w.now = func() time.Time { return w.clock }
	w.ticks(2)
	return w
}

// ticks runs the reloader n times, each to its end before the clock advances.
func (w *watched) ticks(n int) {
	for range n {
		w.clock = w.clock.Add(lookEach)
		w.tick()
	}
}

func (w *watched) tick() {
	ticks := make(chan time.Time)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		w.run(ctx, ticks)
		close(ended)
	}()
	ticks <- w.clock
	cancel()
	<-ended
}

// has checks whether the features one and two are in use.
func (w *watched) has(one, two bool) {
	w.t.Helper()
	_, isOne := w.registry().Feature("one")
	_, isTwo := w.registry().Feature("two")
	if isOne != one || isTwo != two {
		w.t.Errorf("feature one is defined: %v, two: %v; want %v and %v; log:\n%s", isOne, isTwo, one, two, w.log.String())
	}
}

// counted checks the numbers of reloads, and whether the last one was good.
func (w *watched) counted(taken, refused, good int) {
	w.t.Helper()
	want := fmt.Sprintf(`# HELP weir_definitions_last_reload_successful 1 if the definitions in use are those in the files, 0 if those were refused.
# TYPE weir_definitions_last_reload_successful gauge
weir_definitions_last_reload_successful %d
# HELP weir_definitions_reloads_total Changes of the definitions by outcome: loaded, refused.
# TYPE weir_definitions_reloads_total counter
weir_definitions_reloads_total{outcome="refused"} %d
weir_definitions_reloads_total{outcome="loaded"} %d
`, good, refused, taken)
	if err := testutil.GatherAndCompare(w.metrics, strings.NewReader(want),
		"weir_definitions_last_reload_successful", "weir_definitions_reloads_total"); err != nil {
		w.t.Error(err)
	}
}

// A change is loaded at the second look that finds it, however the file was replaced.
func TestChangesAreLoaded(t *testing.T) {
	for name, replace := range map[string]func(t *testing.T, file string){
		"written":  func(t *testing.T, file string) { put(t, file, two) },
		"in place": func(t *testing.T, file string) { put(t, file, two+"# more\n") },
		"renamed": func(t *testing.T, file string) {
			put(t, file+".new", two)
			if err := os.Rename(file+".new", file); err != nil {
				t.Fatal(err)
			}
		},
		"gone and back": func(t *testing.T, file string) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			put(t, file, two)
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "features.yaml")
			put(t, file, one)
			w := watch(t, file)
			w.ticks(3)
			w.counted(0, 0, 1)
			replace(t, file)
			w.ticks(1)
			w.has(true, false)
			w.ticks(1)
			w.has(true, true)
			w.ticks(10)
			w.counted(1, 0, 1)
			if len(w.takes) != 1 || w.takes[0] != w.registry().Version() {
				t.Errorf("the versions taken are %v, want only the current one", w.takes)
			}
			d := w.definitions()
			if d.Version != w.registry().Version() || !d.Reload.Loaded || d.Reload.Error != "" || d.Reload.At.Location() != time.UTC {
				t.Errorf("readiness reports %+v, want a successful reload", d.Reload)
			}
		})
	}
}

// What a change does to answers is logged when it is loaded.
func TestEffectsOfAChangeAreLogged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "features.yaml")
	three := two + "  three: COUNT(1d, login, user_id, where='user_id > \"a\"')\nservices:\n  s: [one, two, three]\n"
	put(t, file, three)
	w := watch(t, file)
	w.ticks(2)
	put(t, file, strings.NewReplacer("COUNT(7d", "COUNT(14d", "COUNT(1d, login, user_id)", "COUNT(1d, login, user_id, tile=2h)", `> "a"`, `> "b"`).Replace(three))
	w.ticks(2)
	for _, want := range []string{
		`level=INFO msg="a feature changes" feature=one services=[s] it="answers from its state, which reaches back 7d: complete once it is filled, or after 14d"`,
		`level=INFO msg="a feature changes" feature=two services=[s] it="answers from its tiles of 1h, which reach back 1d: complete once it is filled, or after 1d"`,
		`level=WARN msg="a feature changes" feature=three services=[s] it="starts over from nothing, and answers less than now: complete once it is filled, or after 1d"`,
	} {
		if !strings.Contains(w.log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, w.log.String())
		}
	}
}

// Kubernetes switches a symbolic link from one folder to another.
func TestFolderBehindASymbolicLink(t *testing.T) {
	dir := t.TempDir()
	for version, text := range map[string]string{"..1": one, "..2": two} {
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, version, "features.yaml"), text)
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("..1", "..data")
	link("..data/features.yaml", "features.yaml")
	w := watch(t, dir)
	w.has(true, false)
	link("..2", "..data_tmp")
	if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	w.ticks(2)
	w.has(true, true)
	// Another file in the folder is a change as well.
	put(t, filepath.Join(dir, "more.yaml"), "features: {three: 'COUNT(1h, login, user_id)'}\n")
	w.ticks(2)
	if _, ok := w.registry().Feature("three"); !ok {
		t.Error("a new file in the folder was not loaded")
	}
}

// Definitions that move to another folder mean the same, and the file of their table is another one.
func TestFileOfATableInAnotherFolder(t *testing.T) {
	dir := t.TempDir()
	const table = "  known: {expr: user.known}\ntables: {user: {file: users.csv, key: user_id, fields: {known: bool}}}\n"
	for _, folder := range []string{"first", "folder"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, folder, "features.yaml"), one+table)
	}
	w := watch(t, filepath.Join(dir, "first"))
	w.paths = []string{filepath.Join(dir, "folder")}
	w.ticks(3)
	if len(w.takes) != 1 || !strings.HasSuffix(w.registry().Tables[0].File, "folder/users.csv") {
		t.Errorf("%d definitions were taken, and the table is read from %s", len(w.takes), w.registry().Tables[0].File)
	}
}

// A file that is still being written is not loaded.
func TestPartlyWrittenFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "features.yaml")
	put(t, file, one)
	w := watch(t, file)
	for n := len(reloadStream); n < len(two); n += 5 {
		put(t, file, two[:n])
		w.ticks(1)
	}
	w.counted(0, 0, 1)
	put(t, file, two)
	w.ticks(2)
	w.has(true, true)
	w.counted(1, 0, 1)
}

// Findings are logged once and completely, and change nothing.
func TestBadChangesAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "features.yaml")
	put(t, file, one)
	w := watch(t, file)
	put(t, file, bad)
	w.ticks(10)
	w.has(true, false)
	w.counted(0, 1, 0)
	findings := []string{
		file + `:4:25: unknown field \"device\" in stream \"login\"; known: user_id`,
		file + `:5:8: unknown function \"CONT\"; did you mean \"count\"?`,
	}
	for _, want := range findings {
		if n := strings.Count(w.log.String(), want); n != 1 {
			t.Errorf("the log has %d lines with %s, want 1:\n%s", n, want, w.log.String())
		}
	}
	if d := w.definitions(); d.Reload == nil || d.Reload.Loaded || strings.Count(d.Reload.Error, file) != 2 {
		t.Errorf("readiness reports %+v, want both findings", d.Reload)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	w.ticks(2)
	w.has(true, false)
	w.counted(0, 2, 0)
	if want := file + ": cannot read definitions: no such file or directory"; !strings.Contains(w.log.String(), want) {
		t.Errorf("the log does not contain %s:\n%s", want, w.log.String())
	}
	put(t, file, one) // as before
	w.ticks(2)
	w.has(true, false)
	w.counted(1, 2, 1)
	if len(w.takes) != 0 {
		t.Errorf("the versions %v were taken, want none", w.takes)
	}
}

// Good definitions that cannot take effect yet are tried again.
func TestChangesThatMustWait(t *testing.T) {
	file := filepath.Join(t.TempDir(), "features.yaml")
	put(t, file, one)
	w := watch(t, file)
	w.refusal = errors.New("no topic logins: create it, or set kafka.create_topics; with ACLs, allow Describe on it")
	put(t, file, two)
	w.ticks(2)
	w.has(true, false)
	w.ticks(int((takeAgain - 1) / lookEach))
	if len(w.takes) != 1 {
		t.Errorf("tried %d times within a second, want once", len(w.takes))
	}
	w.ticks(20)
	if len(w.takes) < 3 || strings.Count(w.log.String(), "no topic logins") != 1 {
		t.Errorf("tried %d times, want at least 3, and one message in the log:\n%s", len(w.takes), w.log.String())
	}
	w.counted(0, 1, 0)
	w.refusal = nil
	w.ticks(6)
	w.has(true, true)
	w.counted(1, 1, 1)
}

// A change that waits may be undone: what the files say is then in use, and nothing is refused any more.
func TestChangeThatWaitsIsUndone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "features.yaml")
	put(t, file, one)
	w := watch(t, file)
	w.refusal = errors.New("no topic logins")
	put(t, file, two)
	w.ticks(10)
	w.counted(0, 1, 0)
	put(t, file, one)
	w.ticks(2)
	w.has(true, false)
	w.counted(1, 1, 1)
	if d := w.definitions(); d.Version != w.registry().Version() || !d.Reload.Loaded || d.Reload.Error != "" {
		t.Errorf("readiness reports %+v, want a successful reload", d.Reload)
	}
	takes := len(w.takes)
	w.ticks(10)
	w.counted(1, 1, 1)
	if len(w.takes) != takes {
		t.Error("definitions that are no longer in the files are still tried")
	}
}

// The demo's definitions are in the binary: there is nothing to watch or to refuse.
func TestEmbeddedDefinitions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "features.yaml")
	put(t, file, one)
	w := watch(t, file)
	w.paths = nil
	w.ticks(3)
	if d := w.definitions(); d.Reload != nil || w.log.String() != "" {
		t.Errorf("embedded definitions were reloaded: %+v\n%s", d.Reload, w.log.String())
	}
}

// Definitions that mean the same are not a change.
func TestEquivalentDefinitions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "features.yaml")
	put(t, file, one)
	w := watch(t, file)
	before := w.registry()
	put(t, file, strings.Replace(one, "one: COUNT(7d, login, user_id)", "one: {function: count, window: 7d, stream: login, by: user_id}", 1))
	w.ticks(3)
	if len(w.takes) != 0 || w.registry().Version() != before.Version() {
		t.Errorf("equivalent definitions were taken: %v", w.takes)
	}
}
