package serve

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/serve/tools"
	"github.com/weir-stream/weir/state"
)

// withKeys serves a store with these keys, and tells how many were asked for.
func withKeys(t *testing.T, found func(r *features.Registry) (state.LongKeys, error)) (h http.Handler, asked *int) {
	t.Helper()
	r := defined.Registry(t, `
streams: {pay: {topic: pay, timestamp: t, fields: {user: string, device: string, at: int}}}
features:
  n: COUNT(1h, pay, user)
  days: ACTIVE(7d, pay, user)
  pairs: COUNT(1h, pay, user, device)
  of_device: COUNT(1h, pay, device, at)
`)
	asked = new(int)
	return newHandler(&fakeReader{}, func(s *setup) {
		s.Registry = func() *features.Registry { return r }
		s.Tools = tools.Config{LongestKeys: func(_ context.Context, most int, _ time.Duration) (state.LongKeys, error) {
			*asked = most
			return found(r)
		}}
	}), asked
}

// groupOf is the group of a feature's state.
func groupOf(r *features.Registry, name string) string {
	f, _ := r.Feature(name)
	return f.Series[0].Group
}

// The greatest keys have their entities, as questions name them, and their features.
func TestGreatestKeys(t *testing.T) {
	keys := func(hashed, all bool, err error) func(*features.Registry) (state.LongKeys, error) {
		return func(r *features.Registry) (state.LongKeys, error) {
			f, _ := r.Feature("of_device")
			return state.LongKeys{Hashed: hashed, Looked: 7, All: all, Keys: []state.LongKey{
				{Key: "{ns:0}a:u|1", Group: groupOf(r, "n"), Entity: `u\|1`, Bytes: 600, Shard: 3, Server: "10.0.0.1:6379"},
				{Key: "{ns:0}b:u2|d2", Group: groupOf(r, "pairs"), Entity: "u2|d2", Bytes: 500},
				{Key: "{ns:0}c:d1", Group: f.Series[0].Parent, Entity: "d1", Bytes: 400},
				{Key: "{ns:0}gone:x", Group: "gone", Entity: "x", Bytes: 300},
			}}, err
		}
	}
	const (
		begin = `{"at":1532520000000,"looked":7,`
		named = `"greatest_keys":[` +
			`{"key":"{ns:0}a:u|1","entity":{"user":"u|1"},"bytes":600,"features":["days","n","pairs"],"shard":3,"server":"10.0.0.1:6379"},` +
			`{"key":"{ns:0}b:u2|d2","entity":{"device":"d2","user":"u2"},"bytes":500,"features":["pairs"],"shard":0},` +
			`{"key":"{ns:0}c:d1","entity":{"device":"d1"},"bytes":400,"features":["of_device"],"shard":0},` +
			`{"key":"{ns:0}gone:x","bytes":300,"features":[],"shard":0}]}`
		hashed = `"greatest_keys":[` +
			`{"key":"{ns:0}a:u|1","bytes":600,"features":["days","n","pairs"],"shard":3,"server":"10.0.0.1:6379"},` +
			`{"key":"{ns:0}b:u2|d2","bytes":500,"features":["pairs"],"shard":0},` +
			`{"key":"{ns:0}c:d1","bytes":400,"features":["of_device"],"shard":0},` +
			`{"key":"{ns:0}gone:x","bytes":300,"features":[],"shard":0}]}`
	)
	away := errors.Join(errors.New("10.0.0.2:6379: nothing listens there"), errors.New("10.0.0.3:6379: nor there"))
	for _, test := range []struct {
		name, target string
		found        func(*features.Registry) (state.LongKeys, error)
		asked        int
		want         string
	}{
		{"all", "/v1/greatest-keys", keys(false, true, nil), 20, begin + named},
		{"hashed", "/v1/greatest-keys?limit=1", keys(true, true, nil), 1, begin + hashed},
		{"some", "/v1/greatest-keys?limit=100", keys(false, false, nil), 100, begin + `"incomplete":"within 8s there was time for some of the keys only",` + named},
		{"those of a part of the store", "/v1/greatest-keys", keys(false, false, away), 20,
			begin + `"incomplete":"10.0.0.2:6379: nothing listens there; 10.0.0.3:6379: nor there",` + named},
		{"none", "/v1/greatest-keys", func(*features.Registry) (state.LongKeys, error) { return state.LongKeys{All: true}, nil }, 20,
			`{"at":1532520000000,"looked":0,"greatest_keys":[]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, asked := withKeys(t, test.found)
			w := do(t, h, "GET", test.target, "")
			if diff := cmp.Diff(test.want+"\n", w.Body.String()); diff != "" || w.Code != 200 || *asked != test.asked {
				t.Errorf("status %d, %d keys asked for; want 200 and %d (-want +got):\n%s", w.Code, *asked, test.asked, diff)
			}
		})
	}
}

func TestGreatestKeysThatAreNotRead(t *testing.T) {
	h, asked := withKeys(t, func(*features.Registry) (state.LongKeys, error) {
		return state.LongKeys{}, errors.New("Redis: nothing listens at redis:6379")
	})
	for _, test := range []struct {
		query  string
		status int
		want   string
	}{
		{"?limit=0", 400, `{"error":{"code":"out_of_range","message":"limit must be from 1 to 100, not 0","key":"limit"}}`},
		{"?limit=101", 400, `{"error":{"code":"out_of_range","message":"limit must be from 1 to 100, not 101","key":"limit"}}`},
		{"?limit=all", 400, `{"error":{"code":"wrong_type","message":"limit must be a whole number, not \"all\""}}`},
		{"?limit=1&limit=2", 400, `{"error":{"code":"duplicate_key","message":"limit is given twice"}}`},
		{"?limits=1", 400, `{"error":{"code":"unknown_key","message":"there is no parameter \"limits\"; use limit","key":"limits","nearest":"limit"}}`},
		{"?limit=%", 400, `{"error":{"code":"malformed_query","message":"the query cannot be read: invalid URL escape \"%\""}}`},
		{"", 503, `{"error":{"code":"store_unavailable","message":"the keys cannot be read: Redis: nothing listens at redis:6379"}}`},
	} {
		if w := do(t, h, "GET", "/v1/greatest-keys"+test.query, ""); w.Code != test.status || w.Body.String() != test.want+"\n" || (*asked == 0) != (test.status == 400) {
			t.Errorf("%s: %d\ngot  %swant %s", test.query, w.Code, w.Body, test.want)
		}
	}
}
