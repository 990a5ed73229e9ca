package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// slowClient reads its answer only when released.
type slowClient struct {
	*httptest.ResponseRecorder
	take  chan struct{}
	bytes int
}

func (c *slowClient) Write(p []byte) (int, error) {
	c.bytes += len(p)
	if len(p) > freeAnswer {
		<-c.take
		return len(p), nil
	}
	return c.ResponseRecorder.Write(p)
}

// longValue is a state whose values are long.
func longValue(bytes int) *fakeReader {
	windowState := state.WindowState{Buckets: []state.Bucket{{Tile: 17737, Value: value.Value{Type: value.String, Str: []byte(strings.Repeat("x", bytes))}}}}
	return &fakeReader{read: func(_ context.Context, reads []state.Read) ([]state.WindowState, error) {
		states := make([]state.WindowState, len(reads))
		for i := range states {
			states[i] = windowState
		}
		return states, nil
	}}
}

// entitiesOf are n distinct devices in JSON.
func entitiesOf(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{"device_id":"d%d"}`, i))
	}
	return strings.Join(all, ",")
}

// Many clients ask for long answers and read them slowly. The answers in memory stay within the limit; the others
// queue, and are refused when their time is over.
func TestAnswersInFlightAreBounded(t *testing.T) {
	const clients, inFlight, answer = 150, 32 << 20, 1 << 20
	const atOnce = inFlight / int(stages) / answer
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(longValue(10_000), func(c *setup) {
			c.Limits.InFlight, c.Limits.Answer, c.Now = inFlight, answer, time.Now
		})
		body := `{"features":["device_max_name_7d"],"entities":[` + entitiesOf(100) + `]}`
		heap := func() int64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before, take := heap(), make(chan struct{})
		asked := make([]*slowClient, clients)
		var all sync.WaitGroup
		for i := range asked {
			asked[i] = &slowClient{httptest.NewRecorder(), take, 0}
			all.Go(func() { h.ServeHTTP(asked[i], httptest.NewRequest("POST", queryPath, strings.NewReader(body))) })
		}
		synctest.Wait() // all answers are being read or queue
		const most = inFlight + clients*2*freeAnswer
		if held := heap() - before; held > most {
			t.Errorf("%d MiB are in use, want at most %d", held>>20, most>>20)
		}
		<-time.After(3 * time.Second) // in the synctest bubble: no question waits any more
		// Short answers are sent while long ones are still being read.
		if w := do(t, h, "GET", "/v1/features/device_max_name_7d?device_id=d1", ""); w.Code != http.StatusOK {
			t.Errorf("a short answer: %d %.200s, want 200", w.Code, w.Body)
		}
		close(take)
		all.Wait()
		answered := 0
		const refusal = `{"error":{"code":"overloaded","message":"the questions under way take all of the 33554432 bytes of memory that api.max_inflight_bytes leaves them; ask about less at once, ask again in a second, or ask another server"}}` + "\n"
		for _, c := range asked {
			switch {
			case c.Code == http.StatusOK && c.bytes > answer*9/10:
				answered++
			case c.Code != http.StatusServiceUnavailable || c.Body.String() != refusal || c.Header().Get("Retry-After") != "1":
				t.Errorf("status %d with %d bytes, want 200 or a refusal with 503: %.300s", c.Code, c.bytes, c.Body)
			}
		}
		if answered != atOnce {
			t.Errorf("%d answers were in memory at once, want %d", answered, atOnce)
		}
	})
}

// A queued question is answered when memory becomes free.
func TestWaitingInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(longValue(10_000), func(c *setup) {
			c.Limits.InFlight, c.Limits.Answer, c.Now = 4<<20, 1<<20, time.Now
		})
		body := `{"features":["device_max_name_7d"],"entities":[` + entitiesOf(100) + `]}`
		take := make(chan struct{})
		var all sync.WaitGroup
		for range 5 {
			c := &slowClient{httptest.NewRecorder(), take, 0}
			all.Go(func() {
				h.ServeHTTP(c, httptest.NewRequest("POST", queryPath, strings.NewReader(body)))
				if c.Code != http.StatusOK || c.bytes < 1<<19 {
					t.Errorf("status %d with %d bytes, want 200 with the whole answer: %.300s", c.Code, c.bytes, c.Body)
				}
			})
		}
		for range 5 {
			synctest.Wait()
			take <- struct{}{} // one is written, and the next has room
		}
		all.Wait()
	})
}

// A question has released its shares before it is free: the next one that uses its memory holds shares of its own.
func TestSharesAreReleasedBeforeTheQuestionIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, freed := longValue(10_000), 0
		h := newHandler(reader, func(c *setup) {
			c.Limits.InFlight, c.Limits.Answer, c.Now = 4<<20, 1<<20, time.Now
		})
		ask := func() int {
			return do(t, h, "POST", queryPath, `{"features":["device_max_name_7d"],"entities":[`+entitiesOf(100)+`]}`).Code
		}
		reader.recycle = func() {
			if freed++; freed == 1 { // there is room for one such answer
				if status := ask(); status != http.StatusOK {
					t.Errorf("status %d of a question when the one before is free, want 200", status)
				}
			}
		}
		if status := ask(); status != http.StatusOK || freed != 2 {
			t.Errorf("status %d, %d questions were free, want 200 and 2", status, freed)
		}
	})
}

// Memory that becomes free shortly before a question's time is over leaves no time for the store. The refusal blames
// the queue or the store, where most of the time was spent.
func TestTimeoutAfterWaitingInLine(t *testing.T) {
	for _, test := range []struct {
		inLine time.Duration
		want   string
	}{
		{1900 * time.Millisecond, `{"error":{"code":"overloaded",`},
		{100 * time.Millisecond, `{"error":{"code":"store_unavailable","message":"the store did not answer within 2s"`},
	} {
		synctest.Test(t, func(t *testing.T) {
			first, calls := make(chan struct{}), 0
			h := newHandler(&fakeReader{read: func(ctx context.Context, reads []state.Read) ([]state.WindowState, error) {
				if calls++; calls == 1 {
					<-first
					return make([]state.WindowState, len(reads)), nil
				}
				<-ctx.Done()
				return nil, ctx.Err()
			}}, func(c *setup) { c.Limits.InFlight, c.Now = int64(stages)*readSize, time.Now })
			body := `{"features":["device_max_name_7d"],"entities":[` + entitiesOf(2) + `]}`
			var all sync.WaitGroup
			ask := func(wantStatus int, want string) {
				all.Go(func() {
					if w := do(t, h, "POST", queryPath, body); w.Code != wantStatus || !strings.HasPrefix(w.Body.String(), want) {
						t.Errorf("%d %s, want %d %s", w.Code, w.Body, wantStatus, want)
					}
				})
				synctest.Wait()
			}
			ask(http.StatusOK, `{"at":`) // takes all the memory for reads
			ask(http.StatusServiceUnavailable, test.want)
			<-time.After(test.inLine)
			close(first)
			all.Wait()
		})
	}
}

// A question whose time is over without queueing, as on an overloaded machine, is not refused for lack of memory.
func TestTimeoutWithRoomLeft(t *testing.T) {
	over, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	q := held{budgets: newBudgets(1 << 20)}
	if err := q.hold(over, parsing, 1000); err != nil || q.bytes[parsing] != 1000 {
		t.Errorf("%d bytes are held, error %v; want 1000", q.bytes[parsing], err)
	}
}

// The bodies that slow clients send, and their parsed form, are also bounded, and all memory is released.
func TestBodiesInFlightAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(longValue(1), func(c *setup) {
			c.Limits.InFlight, c.Limits.Body, c.Now = 4<<20, 512<<10, time.Now
		})
		long := `{"features":["device_max_name_7d"],"entities":[{"device_id":"d1","x":"` + strings.Repeat("x", 400<<10) + `"}]}`
		sending, sent := io.Pipe() // a client that stops in the middle
		first := make(chan int)
		go func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("POST", queryPath, sending))
			first <- w.Code
		}()
		_, _ = sent.Write([]byte(long[:freeBody+1]))
		synctest.Wait()
		ask := func(body string) int { return do(t, h, "POST", queryPath, body).Code }
		if status := ask(long); status != http.StatusServiceUnavailable {
			t.Errorf("a second long body was answered with %d, want 503", status)
		}
		if status := ask(`{"features":["device_max_name_7d"],"entities":[{"device_id":"d1"}]}`); status != http.StatusOK {
			t.Errorf("a short body was answered with %d, want 200", status)
		}
		go func() {
			_, _ = sent.Write([]byte(long[freeBody+1:]))
			_ = sent.Close()
		}()
		if status := <-first; status != http.StatusOK {
			t.Errorf("the slow body was answered with %d, want 200", status)
		}
		if status := ask(long); status != http.StatusOK {
			t.Errorf("a long body after the slow one was answered with %d, want 200", status)
		}
	})
}

// An entity that a question repeats is read and answered once, and written each time.
func TestRepeatedEntitiesAreAnsweredOnce(t *testing.T) {
	reader := &fakeReader{states: stored()}
	h := newHandler(reader, nil)
	got := do(t, h, "POST", queryPath, `{"features":["device_tx_7d","user_last"],"entities":[
		{"device_id":"d1","user_id":"u1"},{"device_id":"d2","user_id":"u1"},{"device_id":"d1","user_id":"u1","x":[1]},{"device_id":"d1","user_id":"u1"}]}`).Body.Bytes()
	var answer struct {
		Results []struct{ Entity, Features json.RawMessage }
	}
	if err := json.Unmarshal(got, &answer); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	if n := len(reader.calls[0]); n != 3 {
		t.Errorf("%d reads, want 3", n)
	}
	for i, entity := range []string{`{"device_id":"d1","user_id":"u1"}`, `{"device_id":"d2","user_id":"u1"}`, `{"device_id":"d1","user_id":"u1","x":[1]}`, `{"device_id":"d1","user_id":"u1"}`} {
		one := do(t, h, "POST", queryPath, `{"features":["device_tx_7d","user_last"],"entities":[`+entity+`]}`).Body.String()
		want := fmt.Sprintf(`{"at":1532520000000,"results":[{"entity":%s,"features":%s}]}`, answer.Results[i].Entity, answer.Results[i].Features)
		if diff := cmp.Diff(one, want+"\n"); diff != "" {
			t.Errorf("entity %d (-alone +among others):\n%s", i, diff)
		}
	}
	const columns = `{"features":["device_tx_7d"],"entities":{"device_id":[%s]}}`
	repeated := do(t, h, "POST", feastPath, fmt.Sprintf(columns, `"d1","d2","d1"`)).Body.String()
	if want := `"values":[3,0,3],"statuses":["PRESENT","NOT_FOUND","PRESENT"]`; !strings.Contains(repeated, want) {
		t.Errorf("got %s\nwant it to contain %s", repeated, want)
	}
}

// Entities are different even if their keys' texts, joined, are the same.
func TestRepeatedEntitiesAreEqualInEachText(t *testing.T) {
	q := entities{sets: 2}
	for i, text := range []string{"a", "bc", "ab", "c", "a", "bc", "", "c", "", "c"} {
		q.texts.bytes = append(q.texts.bytes, text...)
		q.texts.end()
		q.lacks = append(q.lacks, i == 8) // an empty text and a null are different
	}
	q.sent = append(q.sent, nil, nil, nil, nil, nil)
	q.findRepeated()
	if diff := cmp.Diff([]int{0, 1, 0, 3, 4}, q.first); diff != "" || q.distinct() != 4 {
		t.Errorf("%d different entities, want 4; first occurrence of each (-want +got):\n%s", q.distinct(), diff)
	}
}

// A client that hangs up is not a failure of the store: it has its own outcome, and nothing is
// logged.
func TestClientsThatHangUp(t *testing.T) {
	for name, hangUp := range map[string]func(r *http.Request, cancel func()) *fakeReader{
		"while the store is read": func(_ *http.Request, cancel func()) *fakeReader {
			return &fakeReader{read: func(ctx context.Context, _ []state.Read) ([]state.WindowState, error) {
				cancel()
				<-ctx.Done()
				return nil, fmt.Errorf("read features: %w", ctx.Err())
			}}
		},
		"in the middle of the question": func(r *http.Request, _ func()) *fakeReader {
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"features"`), failing{io.ErrUnexpectedEOF}))
			return &fakeReader{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			metrics, log := prometheus.NewRegistry(), new(strings.Builder)
			ctx, cancel := context.WithCancel(t.Context())
			r := httptest.NewRequestWithContext(ctx, "POST", queryPath, strings.NewReader(good))
			reader := hangUp(r, cancel)
			h := newHandler(reader, func(c *setup) { c.Registerer, c.Logger = metrics, logTo(log) })
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != 499 || w.Body.String() != hungUpAnswer || log.Len() > 0 {
				t.Errorf("got %d %s, want 499 %s; log, want none: %q", w.Code, w.Body, hungUpAnswer, log)
			}
			if got := outcomes(t, metrics); got != "abandoned" {
				t.Errorf("counted as %s, want abandoned", got)
			}
		})
	}
	// A canceled call of the store is a failure of the store.
	metrics := prometheus.NewRegistry()
	h := newHandler(&fakeReader{err: errors.Join(io.ErrUnexpectedEOF)}, func(c *setup) { c.Registerer = metrics })
	if w := do(t, h, "POST", queryPath, good); w.Code != http.StatusServiceUnavailable || outcomes(t, metrics) != "unavailable" {
		t.Errorf("got %d %s, counted as %s; want 503, unavailable", w.Code, w.Body, outcomes(t, metrics))
	}
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// outcomes returns the counted outcomes.
func outcomes(t testing.TB, metrics *prometheus.Registry) string {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, family := range families {
		if family.GetName() != "weir_question_duration_seconds" {
			continue
		}
		for _, m := range family.Metric {
			all = append(all, m.Label[0].GetValue())
		}
	}
	if n := testutil.CollectAndCount(metrics, "weir_question_duration_seconds"); n != len(all) {
		t.Fatalf("there are %d series, of which %d have a known outcome", n, len(all))
	}
	return strings.Join(all, " ")
}
