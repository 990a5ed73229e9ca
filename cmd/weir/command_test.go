package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
)

// asWeir is the environment variable that makes the test binary run as weir.
const asWeir = "WEIR_TEST_AS_WEIR"

func TestMain(m *testing.M) {
	if os.Getenv(asWeir) != "" {
		main()
		return
	}
	testkit.Main(m)
}

// patience bounds every wait of these tests on a busy machine.
const patience = time.Minute

// screen is a writer that can be read while it is written to.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// process is one run of the binary.
type process struct {
	out, err screen
	stop     context.CancelFunc
	done     chan error
}

// start runs a command until it ends, or until the test does.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	return startWith(t, nil, args...)
}

// startWith is start with a standard input.
func startWith(t *testing.T, stdin io.Reader, args ...string) *process {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	p := &process{stop: stop, done: make(chan error, 1)}
	cmd := newRootCommand()
	cmd.SetArgs(args)
	cmd.SetIn(stdin)
	cmd.SetOut(&p.out)
	cmd.SetErr(&p.err)
	go func() { p.done <- cmd.ExecuteContext(ctx) }()
	t.Cleanup(stop)
	return p
}

// wait waits until the command ends, and returns its error.
func (p *process) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-p.done:
		return err
	case <-time.After(2 * patience):
		t.Fatalf("the command does not end in time:\n%s%s", p.out.String(), p.err.String())
		return nil
	}
}

// shows waits until a text appears on standard error.
func (p *process) shows(t *testing.T, text string) {
	t.Helper()
	testkit.Eventually(t, patience, text, func() (bool, string) {
		select {
		case err := <-p.done:
			t.Fatalf("the command has ended: %v\n%s", err, p.err.String())
		default:
		}
		return strings.Contains(p.err.String(), text), p.err.String()
	})
}

// weir runs a command to its end.
func weir(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	p := start(t, args...)
	err = p.wait(t)
	return p.out.String(), err
}

func TestBadUse(t *testing.T) {
	t.Parallel()
	for _, b := range []struct{ args, want string }{
		{"validate", "weir: requires at least 1 arg(s), only received 0; usage: weir validate PATH... [flags]"},
		{"run weir.yaml", `weir: weir run takes no "weir.yaml"; usage: weir run [flags]; --config names a file of settings`},
		{"version 1", `weir: weir version takes no "1"; usage: weir version [flags]`},
		{"validate /none.yaml", "/none.yaml: cannot read definitions: no such file or directory"},
		{"explain /none.yaml", "/none.yaml: cannot read definitions: no such file or directory"},
		{"explain ../../config/features --load much", `weir: --load: "much": write events=100k/s,entities=100M, and optionally questions=5k/s or memory=64GiB`},
		{"run --roles judge", `weir: --roles: "judge" is not a role: processor, api or both with a comma`},
		{"run --roles=", "weir: --roles: needs at least one of processor and api"},
		{"run --config /none.yaml", "weir: settings: open /none.yaml: no such file or directory"},
		{"run --shards 0 --log.level loud", "--shards: shards 0 is not allowed: 1 to 16384\n" +
			`--log.level: log.level "loud" is not allowed: debug, info, warn or error`},
		{"run --features /none.yaml", "--features: features names /none.yaml, which cannot be read: no such file or directory"},
		{"generate", "weir: at least one of the flags in the group [brokers config output] is required"},
		{"generate --output - --events -1", "weir: --events -1: not below 0"},
		{"generate --output - --rate -1", "weir: --rate -1: not below 0"},
		{"generate --output /none/such", "weir: --output: open /none/such: no such file or directory"},
		{"demo --exit", "weir: --exit needs a number of --events to wait for"},
		{"demo --rate abc", `weir: --rate must be a number; "abc" is not`},
		{"demo --days 1.5", `weir: --days must be a whole number; "1.5" is not`},
		{"demo --seed -1", `weir: --seed must be a whole number of at least 0; "-1" is not`},
		{"query --timeout 5", `weir: --timeout must be a duration such as 30s or 24h; "5" is not`},
		{"query --json=perhaps", `weir: --json must be true or false; "perhaps" is not`},
		{"query --adress x", `weir: unknown flag "--adress"; did you mean "--address"?`},
		{"run --kafka.broker a:1", `weir: unknown flag "--kafka.broker"; did you mean "--kafka.brokers"?`},
		{"run --registry.token abc", "weir: --registry.token is not a flag, since others on this machine could read it: set WEIR_REGISTRY_TOKEN, or --registry.token_file"},
		{"query -x", "weir: unknown shorthand flag: 'x' in -x"},
		{"query --address", "weir: flag needs an argument: --address"},
		{"demo --rate -1", "weir: --events, --rate and --days must not be below 0"},
		{"demo --features /none.yaml", "/none.yaml: cannot read definitions: no such file or directory"},
		{"deadletters list --reason wrong", `weir: "wrong" is not a reason of a dead letter; there are malformed, wrong_type, missing_field, ` +
			`invalid_utf8, missing_timestamp, bad_timestamp, future_timestamp, expression, oversized, unusable_schema, broken_batch, defect, late`},
		{"deadletters lst", `weir: unknown command "lst" of weir deadletters; did you mean "list"?`},
		{"list ad blocked_cards c1", `weir: unknown command "ad" of weir list; did you mean "add"?`},
		{"deadletters list --since yesterday", `weir: --since: "yesterday" is neither a moment such as 2026-01-31T23:59:59Z nor a time ago such as 24h`},
		{"deadletters replay --until -1h", `weir: --until: "-1h" is neither a moment such as 2026-01-31T23:59:59Z nor a time ago such as 24h`},
		{"deadletters show payments", `weir: "payments" does not name a record: write topic/partition/offset, such as transactions/3/1040`},
		{"deadletters show", "weir: accepts 1 arg(s), received 0; usage: weir deadletters show TOPIC/PARTITION/OFFSET [flags]"},
		{"deadletters replay --batch 0", "weir: --batch 0: at least 1"},
		{"deadletters replay --kafka.isolation read_uncommitted", "weir: kafka.isolation is read_uncommitted: " +
			"processors would count what an interrupted replay has rolled back; set read_committed"},
		{"state", "weir: name an entity by its keys, such as user_id=u000001"},
		{"state u1", `weir: "u1" is not a key with a value, such as user_id=u000001`},
		{"state user_id=1 user_id=2", `weir: key "user_id" is given twice`},
		{"state user_id=1 --features /none.yaml", "--features: features names /none.yaml, which cannot be read: no such file or directory"},
		{"state drop user_id=1 --store.type ignite --features " + shipped,
			"weir: this works on Redis, and store.type is ignite: replay everything into another namespace"},
		{"reshard --to 8 --store.type ignite --features " + shipped,
			"weir: this works on Redis, and store.type is ignite: begin another namespace with as many shards as you want, and replay everything into it"},
		{"diff " + shipped + " " + shipped + " --memory --store.type ignite --ignite.addresses 127.0.0.1:1",
			"weir: --memory: read the layout: 127.0.0.1:1: nothing listens at 127.0.0.1:1: check the address, and that the server runs"},
		{"sql", "weir: requires at least 1 arg(s), only received 0; usage: weir sql QUERY [VALUE...] [flags]"},
		{"progress --features /none.yaml", "--features: features names /none.yaml, which cannot be read: no such file or directory"},
		{"doctor --shards 0", "--shards: shards 0 is not allowed: 1 to 16384"},
		{"dance", `weir: unknown command "dance" for "weir"`},
	} {
		t.Run(b.args, func(t *testing.T) {
			_, err := weir(t, strings.Fields(b.args)...)
			if err == nil {
				t.Fatal("no error")
			}
			if got := message(err); got != b.want {
				t.Errorf("\ngot  %s\nwant %s", got, b.want)
			}
		})
	}
}

// Servers that are unavailable are reported in plain words, without the messages of client libraries.
func TestUnavailableServersAreReported(t *testing.T) {
	t.Parallel()
	const away = "nothing listens at 127.0.0.1:1: check the address, and that the server runs"
	for args, want := range map[string]string{
		"deadletters list --redis.addresses 127.0.0.1:1 --redis.read_timeout 1m":                                  away,
		"preview --kafka.brokers 127.0.0.1:1 --features ../../config/features":                                    "weir: read the topics: " + away,
		"state user_id=u1 --redis.addresses 127.0.0.1:1 --redis.read_timeout 1m --features ../../config/features": away,
	} {
		_, err := weir(t, strings.Fields(args)...)
		if err == nil {
			t.Errorf("%s: no error", args)
		} else if got := message(err); !strings.HasSuffix(got, want) {
			t.Errorf("%s\ngot  %s\nwant %s", args, got, want)
		}
	}
}

func TestListenOnATakenAddress(t *testing.T) {
	t.Parallel()
	address, _ := server(t, 200, "")
	host := strings.TrimPrefix(address, "http://")
	want := fmt.Sprintf("serve on %s: listen tcp %[1]s: bind: address already in use", host)
	for _, args := range [][]string{
		{"demo", "--listen", host},
		{"run", "--features", "../../config/features", "--api.listen", host},
	} {
		if _, err := weir(t, args...); fmt.Sprint(err) != want {
			t.Errorf("%v\ngot  %v\nwant %s", args, err, want)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	out, err := weir(t, "version")
	if err != nil || !strings.HasPrefix(out, "weir ") || !strings.Contains(out, "go1.") {
		t.Errorf("version = %q, %v", out, err)
	}
}
