package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/internal/testkit/server"
)

// setting returns the value of a variable that names a program of this machine; without it the test is skipped.
func setting(t *testing.T, variable, what string) string {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		server.Skip(t, fmt.Errorf("set %s to %s", variable, what))
	}
	return value
}

// schemaRegistry is an Apicurio in its Confluent-compatible mode, whose schemas survive a kill.
type schemaRegistry struct {
	*server.Process
	t   *testing.T
	url string
}

func newSchemaRegistry(t *testing.T, jar string) *schemaRegistry {
	t.Helper()
	port, err := server.FreePort(1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r := &schemaRegistry{t: t, url: fmt.Sprintf("http://127.0.0.1:%d/apis/ccompat/v7", port), Process: server.NewProcess(dir, "java",
		"-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.io.tmpdir="+dir,
		"-Dquarkus.http.host=127.0.0.1", fmt.Sprintf("-Dquarkus.http.port=%d", port),
		"-Dquarkus.management.host=127.0.0.1", fmt.Sprintf("-Dquarkus.management.port=%d", port+1),
		"-Dapicurio.datasource.url=jdbc:h2:file:"+dir+"/registry;WRITE_DELAY=0", "-jar", jar)}
	t.Cleanup(r.Remove)
	r.start()
	return r
}

func (r *schemaRegistry) start() {
	r.t.Helper()
	if err := r.Start(); err != nil {
		r.t.Fatal(err)
	}
	err := server.Await("the schema registry", r, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/subjects", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *schemaRegistry) kill() {
	r.t.Helper()
	if err := r.End(syscall.SIGKILL); err != nil {
		r.t.Fatal(err)
	}
}

// Records of Confluent's own serializers, with schemas of a real registry, are read exactly: Avro with a union and a
// decimal, Protobuf with references, JSON Schema. An unknown ID is a dead letter. While the registry is unavailable, a
// record of an unknown schema waits, others do not, and nothing is lost. Confluent's deserializer reads Weir's records
// in Avro, with the schema that Weir registers.
func TestSerializersOfConfluent(t *testing.T) {
	t.Parallel()
	if testkit.Race {
		t.Skip("the detector finds nothing more than with the registries of pipeline/schemas")
	}
	jar := setting(t, "WEIR_TEST_REGISTRY", "the runner jar of apicurio-registry-app")
	python := setting(t, "WEIR_TEST_CONFLUENT", "a Python that has what .ci/requirements.txt names")
	broker := kafkatest.New(t, kafkatest.Options{})
	made, err := broker.Client().CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{
		{Topic: "avro", NumPartitions: 1, ReplicationFactor: 1}, {Topic: "protobuf", NumPartitions: 1, ReplicationFactor: 1},
		{Topic: "json", NumPartitions: 1, ReplicationFactor: 1}, {Topic: deadLetters, NumPartitions: 1, ReplicationFactor: 1},
		{Topic: "enriched", NumPartitions: 1, ReplicationFactor: 1},
	}})
	if err != nil || errors.Join(made.Errors["avro"], made.Errors["protobuf"], made.Errors["json"], made.Errors[deadLetters], made.Errors["enriched"]) != nil {
		t.Fatal(err, made)
	}
	registry := newSchemaRegistry(t, jar)
	program := func(name string, arguments ...string) string {
		t.Helper()
		arguments = append([]string{"testdata/" + name, strings.Join(broker.Addrs(), ","), registry.url}, arguments...)
		out, err := exec.CommandContext(t.Context(), python, arguments...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	produce := func(phase string) {
		t.Helper()
		program("serializers.py", phase)
	}
	definitions, err := filepath.Abs("testdata/serializers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	namespace, user := testkit.Namespace(t), []json.RawMessage{json.RawMessage(`{"user":"u1"}`)}
	settings := []string{
		"--namespace", namespace, "--features", definitions, "--kafka.group", namespace, "--registry.url", registry.url,
		"--kafka.brokers", strings.Join(broker.Addrs(), ","), "--redis.addresses", redistest.New(t, redistest.Options{AOF: true}).Addr(),
	}
	answers := func(w *weir, want string) {
		t.Helper()
		testkit.Eventually(t, time.Minute, "the answers are "+want, func() (bool, string) {
			reply, err := w.ask(question{Features: []string{"avro_spent", "protobuf_spent", "json_spent"}, Entities: user, At: time.Now().UnixMilli()})
			if err != nil {
				return false, err.Error()
			}
			got := fmt.Sprintf("%s %s %s", reply[0]["avro_spent"].Value, reply[0]["protobuf_spent"].Value, reply[0]["json_spent"].Value)
			return got == want, got
		})
	}

	produce("first")
	w := startWeir(t, settings...)
	answers(w, "1 1 1")
	unknown := &kgo.Record{Topic: "avro", Value: []byte{0, 0, 0, 0x7f, 0xff, 2}}
	if err := newProducer(t, broker).plain.ProduceSync(ctx, unknown).FirstErr(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, time.Minute, "the unknown schema is a dead letter", func() (bool, string) {
		return w.metric("weir_dead_letters_total", `reason="unusable_schema"`) == 1, w.Log()
	})
	w.Stop()

	produce("second")
	registry.kill()
	w = startWeir(t, settings...)
	answers(w, "1 1 1.5")
	// The JSON record may be applied before the Avro record has been fetched.
	testkit.Eventually(t, time.Minute, "/readyz says what the processor waits for", func() (bool, string) {
		body := w.awaitStatus("/readyz", http.StatusServiceUnavailable)
		return strings.Contains(body, "cannot be fetched"), body
	})
	if n := w.metric("weir_stopped_partitions", `reason="schema_registry"`); n != 1 {
		t.Errorf("%v partitions wait for the registry, want 1", n)
	}
	registry.start()
	answers(w, "1.5 1 1.5")
	w.awaitReady()
	if n := w.metric("weir_dead_letters_total", ""); n != 0 {
		t.Errorf("%v records became dead letters while the registry was unavailable, want none", n)
	}
	var want strings.Builder
	for i := 1; i <= 15; i++ {
		fmt.Fprintf(&want, "u1 0.10 %d.%d0 PRESENT True [('0.10', %d)] PRESENT\n", i/10, i%10, i)
	}
	if got := program("deserializer.py", "enriched", "15"); got != want.String() {
		t.Errorf("got\n%swant\n%s", got, want.String())
	}
}
