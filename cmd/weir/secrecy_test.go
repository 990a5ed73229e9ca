package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/testkit"
)

// secret is in every value of every event and question of the test.
const secret = "jane.doe-4711"

// ask sends a request with a body and returns the response, errors included.
func ask(t *testing.T, method, address, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// Logs at info level and above contain no entities, whether from poison events, bad questions or
// damaged state in Redis.
func TestLogsContainNoEntities(t *testing.T) {
	t.Parallel()
	flags, redisAddress := servers(t, allTopics)
	client := redis.NewClient(&redis.Options{Addr: redisAddress})
	defer client.Close()
	p := start(t, append([]string{"run"}, flags...)...)
	base := p.address(t)
	ready(t, base)

	now := strconv.FormatInt(time.Now().UnixMilli(), 10)
	event := func(id, device string) string {
		return fmt.Sprintf(`{"event_id": %q, "type": "transaction", "timestamp": %s, "device_id": %q, "user_id": %q,
			"merchant_id": %q, "amount": 1, "status": "approved"}`, id, now, device, secret, secret)
	}
	writer := &kafka.Writer{Addr: kafka.TCP(flags[7]), Topic: "transactions", BatchSize: 1}
	defer writer.Close()
	write := func(values ...string) {
		t.Helper()
		for _, value := range values {
			message := kafka.Message{Key: []byte(secret), Value: []byte(value), Headers: []kafka.Header{{Key: secret, Value: []byte(secret)}}}
			if err := writer.WriteMessages(t.Context(), message); err != nil {
				t.Fatal(err)
			}
		}
	}
	metric := func(series string) {
		t.Helper()
		testkit.Eventually(t, patience, series, func() (bool, string) {
			_, metrics := statusOf(t, base+"/metrics")
			for line := range strings.Lines(metrics) {
				if strings.HasPrefix(line, series) && !strings.HasSuffix(line, " 0\n") {
					return true, ""
				}
			}
			return false, metrics
		})
	}
	write(event(secret, secret),
		`{"type": "transaction", "device_id": "`+secret+`"`,
		strings.Replace(event(secret, secret), now, `"`+secret+`"`, 1),
		strings.Replace(event(secret, secret), `"amount": 1`, `"amount": "`+secret+`"`, 1),
		strings.Replace(event(secret, secret), `"device_id": "`+secret+`"`, `"device_id": {"`+secret+`": 1}`, 1))
	metric("weir_dead_letters_total")

	query := base + "/v1/query"
	for _, question := range []string{
		`{"features": ["device_tx_7d"], "entities": [{"device_id": "` + secret + `"}], "at": "` + secret + `"}`,
		`{"features": ["` + secret + `"], "entities": [{"device_id": "` + secret + `"}]}`,
		`{"features": ["device_tx_7d"], "entities": [{"device_id": "` + secret + `", "device_id": "` + secret + `"}]}`,
		`{"features": ["device_tx_7d"], "entities": [{"` + secret + `": 1}]}`,
		`{"features": ["device_tx_7d"], "entities": "` + secret + `"}`,
		`{"features": ["device_tx_7d"], "entities": [{"device_id": "` + secret,
		`{"features": ["device_tx_7d"], "entities": [{"device_id": "d"}], "pending": {"stream": "transaction", "event": {"device_id": "` + secret + `"}}}`,
	} {
		if code, body := ask(t, "POST", query, question); code/100 != 4 {
			t.Errorf("%s was answered with %d %s, want a status of 4xx", question, code, body)
		}
	}
	for _, path := range []string{"/v1/features/device_tx_7d?device_id=" + secret + "&at=" + secret, "/v1/features/" + secret,
		"/v1/features/device_tx_7d?device_id=" + secret + "%zz", "/" + secret} {
		if code, body := ask(t, "GET", base+path, ""); code/100 != 4 {
			t.Errorf("%s was answered with %d %s, want a status of 4xx", path, code, body)
		}
	}

	// The state is damaged; a question and the processor read it.
	good := `{"features": ["device_tx_7d"], "entities": [{"device_id": "` + secret + `"}]}`
	testkit.Eventually(t, patience, "the event's state", func() (bool, string) {
		_, body := ask(t, "POST", query, good)
		return strings.Contains(body, `"value":1`), body
	})
	damaged := 0
	for _, key := range client.Keys(context.Background(), "*:*"+secret+"*").Val() {
		if client.Type(t.Context(), key).Val() == "string" {
			damaged++
			if err := client.Set(t.Context(), key, strings.Repeat("\xff", 800), 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if damaged == 0 {
		t.Fatal("no key of the entity was found")
	}
	if code, body := ask(t, "POST", query, good); code != http.StatusOK || !strings.Contains(body, `"status":"DAMAGED"`) {
		t.Errorf("damaged state was answered with %d %s, want 200 and DAMAGED", code, body)
	}
	write(event("another", secret))
	p.shows(t, "the store refused mutations")
	p.stop()
	if err := p.wait(t); err != nil {
		t.Error(err)
	}
	log := p.err.String()
	for _, wanted := range []string{"the state is damaged", "state is damaged: an entity has no answer", "weir is running"} {
		if !strings.Contains(log, wanted) {
			t.Errorf("the log does not contain %q:\n%s", wanted, log)
		}
	}
	if strings.Contains(log, secret) {
		t.Errorf("the log contains %s:\n%s", secret, log)
	}
}

// With a secret, no key in Redis contains an entity, and processes that have the secret answer as
// before.
func TestKeysContainNoEntities(t *testing.T) {
	t.Parallel()
	flags, redisAddress := servers(t, allTopics)
	keyFile := writeFile(t, t.TempDir(), "key", "0123456789abcdef")
	hashed := append(flags, "--store.hash_entities.key_file", keyFile)
	p := start(t, append([]string{"run"}, hashed...)...)
	base := p.address(t)
	ready(t, base)
	if _, err := weir(t, "generate", "--brokers", flags[7], "--events", "100", "--live"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, patience, "an answer", func() (bool, string) {
		out, err := weir(t, "query", "--address", base, "device_tx_7d", "device_id=d000001")
		return strings.Contains(out, "PRESENT"), fmt.Sprint(out, err)
	})
	out, err := weir(t, append([]string{"state", "device_id=d000001"}, hashed...)...)
	if err != nil || !strings.Contains(out, "device_tx_7d") {
		t.Errorf("weir state: %v\n%s", err, out)
	}
	testkit.Eventually(t, patience, "the busiest entities, by their hashes", func() (bool, string) {
		_, body := statusOf(t, base+"/v1/busiest")
		if strings.Contains(body, "d000") || strings.Contains(body, "u000") {
			t.Fatalf("the answer names the busiest entities: %s", body)
		}
		return strings.Contains(body, `"key":"device_id"`) && strings.Contains(body, `"hashed":true`), body
	})
	_, body := statusOf(t, base+"/v1/greatest-keys")
	if strings.Contains(body, "u000") || strings.Contains(body, "d000") || strings.Contains(body, `"entity"`) || !strings.Contains(body, `"user_tx_1h"`) {
		t.Errorf("the answer about the greatest keys names entities, or lacks features: %s", body)
	}
	client := redis.NewClient(&redis.Options{Addr: redisAddress})
	defer client.Close()
	keys := client.Keys(t.Context(), "*").Val()
	if len(keys) < 10 {
		t.Errorf("there are %d keys, want at least 10", len(keys))
	}
	for _, key := range keys {
		if strings.Contains(key, "d000") || strings.Contains(key, "u000") {
			t.Errorf("key %q names an entity", key)
		}
	}
	_, err = weir(t, append([]string{"state", "device_id=d000001"}, flags...)...)
	if err == nil || !strings.Contains(err.Error(), "was made with hash_entities by key") {
		t.Errorf("without the secret: got error %v", err)
	}
	_, err = weir(t, append([]string{"run"}, append(flags, "--store.hash_entities.key_file", "/none.key")...)...)
	if want := "store.hash_entities.key_file: open /none.key: no such file or directory"; fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
