package inspect

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/ignitetest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/ignite"
	"github.com/weir-stream/weir/store/ignite/thin"
	redisstore "github.com/weir-stream/weir/store/redis"
	"github.com/weir-stream/weir/store/storetest/plain"
)

const selected = streams + `
  pays_7d:     COUNT(7d, pay, user)
  pays_ever:   COUNT(lifetime, pay, user)
  exact_7d:    COUNT(7d, pay, user, tile=exact)
  large_exact: SUM(7d, pay, amount, user, tile=exact, where='ok')
  spent_7d:    SUM(7d, pay, amount, user)
  mean_7d:     AVG(7d, pay, amount, user)
  greatest_7d: MAX(7d, pay, amount, user)
  first_7d:    FIRST(7d, pay, amount, user)
  shops_7d:    COUNT_DISTINCT(7d, pay, user, shop)
  last_shops:  COUNT_DISTINCT(7d, pay, user, shop, method=last_seen, max=9)
  about_7d:    APPROX_COUNT_DISTINCT(7d, pay, user, shop)
  spread_7d:   STDDEV(7d, pay, amount, user)
  pair_7d:     COUNT(7d, pay, shop, user)
  by_shop:     {function: sum, stream: pay, field: amount, by: [user], window: 7d, per: shop}
  ok_part:     RATIO(7d, pay, user, condition='ok', tile=exact)
  part:        {expr: spent_7d / pays_7d}
  like_it:     COUNT(7d, pay, user, where='shop == event.shop', tile=exact)
`

// stores are those that the tests of queries run on.
func stores(t *testing.T, run func(t *testing.T, s store.Store, inspected Store)) {
	t.Run("redis", func(t *testing.T) {
		s := redisstore.New(redistest.Shared(t).Client(t), testkit.Namespace(t), 2)
		run(t, s, s)
	})
	t.Run("plain", func(t *testing.T) {
		s := plain.New(2)
		run(t, s, s)
	})
	t.Run("ignite", func(t *testing.T) {
		c := thin.New(thin.Config{Addresses: ignitetest.Shared(t).Addresses(), Login: thin.Login{Timeout: 10 * time.Second}, Request: 20 * time.Second})
		t.Cleanup(func() { _ = c.Close() })
		s := ignite.New(ignite.Config{Client: c, Namespace: testkit.Namespace(t), Shards: 2, Slack: time.Hour})
		if err := s.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		run(t, s, s)
	})
}

// A query over the window of a question gives what the question answers: the functions of the textbook in its own form.
func TestSelectAsAnswered(t *testing.T) {
	stores(t, func(t *testing.T, s store.Store, inspected Store) {
		r := registry(t, selected)
		fill(t, s, r, events...)
		for _, c := range []struct{ feature, query string }{
			{"pays_7d", "SELECT sum(count) FROM pays_7d WHERE user = ? AND timestamp >= ?"},
			{"pays_ever", "SELECT sum(count) FROM pays_ever WHERE user = ?"},
			{"exact_7d", "SELECT count(*) FROM exact_7d WHERE user = ? AND timestamp >= ?"},
			{"large_exact", "SELECT sum(value) FROM large_exact WHERE user = ? AND timestamp >= ?"},
			{"spent_7d", "SELECT sum(sum) FROM spent_7d WHERE user = ? AND timestamp >= ?"},
			{"greatest_7d", "SELECT max(max) FROM greatest_7d WHERE user = ? AND timestamp >= ?"},
			{"shops_7d", "SELECT count(DISTINCT value) FROM shops_7d WHERE user = ? AND timestamp >= ?"},
			{"last_shops", "SELECT count(value) FROM last_shops WHERE user = ? AND timestamp >= ?"},
		} {
			for _, user := range []string{"u1", "u2", "nobody"} {
				f, err := r.FeatureNamed(c.feature)
				if err != nil {
					t.Fatal(err)
				}
				for _, at := range []int64{noon, noon + 30*60_000, noon + 6*24*3_600_000, noon + 8*24*3_600_000} {
					var a query.Answer
					var reading query.Reading
					reading.Reset(at)
					reading.Want(f, user, at)
					if err := reading.Read(t.Context(), s); err != nil {
						t.Fatal(err)
					}
					reading.Next(&a)
					values := []string{user, fmt.Sprint(a.From)}
					got, err := Select(t.Context(), inspected, r, c.query, values[:strings.Count(c.query, "?")])
					if err != nil || len(got.Rows) != 1 || string(got.Rows[0][0].AppendText(nil)) != string(a.Value.AppendText(nil)) &&
						!(a.Value.Num == 0 && a.Value.Flt == 0 && got.Rows[0][0].IsNull()) { // SQL has no sum of nothing
						t.Errorf("%s of %s at %d: got %+v, error %v; want %s", c.feature, user, at, got.Result, err, a.Value.AppendText(nil))
					}
				}
			}
		}
	})
}

func TestSelect(t *testing.T) {
	stores(t, func(t *testing.T, s store.Store, inspected Store) {
		r := registry(t, selected)
		fill(t, s, r, events...)
		for _, c := range []struct{ query, want string }{
			{"SELECT * FROM spent_7d WHERE user = 'u1'", "user timestamp sum; u1 2025-01-01T00:00:00Z 13.76"},
			{"SELECT * FROM mean_7d WHERE user = 'u1'", "user timestamp sum count_values; u1 2025-01-01T00:00:00Z 13.76 4"},
			{"SELECT * FROM pays_ever WHERE user = 'u1'", "user count; u1 4"},
			{"SELECT timestamp, value FROM shops_7d WHERE user = 'u1'", "timestamp value; 2025-01-01T00:00:00Z 7; 2025-01-01T00:00:00Z 8; 2025-01-01T00:00:00Z 9"},
			{"SELECT timestamp, value FROM large_exact WHERE user = 'u1'", "timestamp value; 2025-01-01T11:00:00Z 1.5; 2025-01-01T12:00:00Z 10.25; 2025-01-01T12:00:00Z 0.01"},
			{"SELECT holds, count(*) FROM ok_part WHERE user = 'u1' GROUP BY holds", "holds count(*); true 3; false 1"},
			{"SELECT key, sum(sum) FROM by_shop WHERE user = 'u1' GROUP BY key", "key sum(sum); 7 11.75; 8 2; 9 0.01"},
			{"SELECT first_value FROM first_7d WHERE user = 'u1'", "first_value; 1.5"},
			{"SELECT estimate FROM about_7d WHERE user = 'u1'", "estimate; 3"},
			{"SELECT number, mean FROM spread_7d WHERE user = 'u1'", "number mean; 4 3.44"},
			{"SELECT shop, user, count FROM pair_7d WHERE user = 'u1' AND shop = 7", "shop user count; 7 u1 2"},
			{"SELECT count FROM pays_7d WHERE user = 'nobody'", "count"},
			{"SELECT sum(count), count(*) FROM pays_7d WHERE user = 'nobody'", "sum(count) count(*); NULL 0"},

			{"SELECT count", "at character 13: want FROM, got the end; "},
			{"SELECT count FROM pays_70d", `unknown feature "pays_70d"; did you mean`},
			{"SELECT count FROM pays_7d", "feature pays_7d: the state of one entity can be asked for: add user = '…' to WHERE"},
			{"SELECT count FROM pays_7d WHERE user > 'u1'", "feature pays_7d: the state of one entity can be asked for: add user = '…' to WHERE"},
			{"SELECT count FROM pair_7d WHERE user = 'u1' AND shop = 'x'", "feature pair_7d: shop=x is not a valid int"},
			{"SELECT sums FROM spent_7d WHERE user = 'u1'", `there is no column "sums"; there are user, timestamp, key, value, sum, number`},
			{"SELECT count FROM part WHERE user = 'u1'", "feature part: it has no state of its own, but is made from spent_7d, pays_7d"},
			{"SELECT count(*) FROM like_it WHERE user = 'u1'", "feature like_it: its filter compares with the event that a question is about: ask weir query"},
		} {
			var out strings.Builder
			got, err := Select(t.Context(), inspected, r, c.query, nil)
			if err == nil {
				got.WriteText(&out)
			} else {
				out.WriteString(err.Error())
			}
			var lines []string
			for line := range strings.Lines(out.String()) {
				lines = append(lines, strings.Join(strings.Fields(line), " "))
			}
			if text := strings.Join(lines, "; "); text != c.want && (err == nil || !strings.HasPrefix(text, c.want)) {
				t.Errorf("%s\ngot  %s\nwant %s", c.query, text, c.want)
			}
		}
		got, err := Select(t.Context(), inspected, r, "SELECT timestamp, key, sum(sum), user FROM by_shop WHERE user = ? AND key = '7' GROUP BY timestamp, key, user", []string{"u1"})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(got)
		if want := `{"columns":["timestamp","key","sum(sum)","user"],"rows":[[1735689600000,"7",11.75,"u1"]]}`; err != nil || string(text) != want {
			t.Errorf("in JSON: got %s, error %v; want %s", text, err, want)
		}
	})
}

// What is damaged is said, and answers nothing.
func TestSelectDamaged(t *testing.T) {
	s := plain.New(2)
	r := registry(t, selected)
	fill(t, s, r, events...)
	f, _ := r.FeatureNamed("pays_7d")
	s.Spoil(f.Series[0], "u1")
	_, err := Select(t.Context(), s, r, "SELECT count FROM pays_7d WHERE user = 'u1'", nil)
	if want := "feature pays_7d: the state is damaged: it is a value, which Weir has not written"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
