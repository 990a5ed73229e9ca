package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/serve/catalogue"
	"github.com/weir-stream/weir/state"
)

// described returns the catalogue of definitions whose store answers with a history.
func described(t *testing.T, r *features.Registry, history *state.History, failure error) map[string]catalogue.Feature {
	t.Helper()
	h := newHandler(&fakeReader{}, func(c *setup) {
		c.Registry = func() *features.Registry { return r }
		c.History = func(context.Context) (*state.History, error) { return history, failure }
	})
	var c catalogue.Catalogue
	if err := json.Unmarshal(do(t, h, "GET", "/v1/features", "").Body.Bytes(), &c); err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Streams {
		if s.Entities == 0 || s.Mutations == 0 {
			t.Errorf("the costs of stream %s are 0", s.Name)
		}
	}
	of := map[string]catalogue.Feature{}
	for _, f := range c.Features {
		of[f.Name] = f
		for _, s := range f.Series {
			if s.Stream == "" || f.Stream != "" && s.Stream != f.Stream || s.BytesOnce == 0 || s.BytesFull < s.BytesOnce {
				t.Errorf("%s: unexpected series %+v", f.Name, s)
			}
		}
	}
	return of
}

// The catalogue states since when features are complete, as answers do. It is also answered without a store.
func TestCatalogueStatesCompleteSince(t *testing.T) {
	since := func(f catalogue.Feature) string {
		if f.CompleteSince == nil {
			return "always"
		}
		return fmt.Sprint(*f.CompleteSince)
	}
	r, history := partlyKept(t)
	_, bypassed := partlyKept(t, state.PlanEpoch{Topic: "payments", Version: "?", Last: state.MaxTime})
	for _, test := range []struct {
		name    string
		history *state.History
		failure error
		want    map[string]string
	}{
		{"in part", history, nil, map[string]string{"always": "always", "later": "1532510000001", "logins": "1532511000001", "ratio": "1532511000001"}},
		{"while events bypass it", bypassed, nil, map[string]string{"later": "1532520000000", "logins": "1532511000001", "ratio": "1532520000000"}},
		{"of a store that keeps no history", nil, nil, map[string]string{"later": "always", "ratio": "always"}},
		{"of a store that is away", nil, errors.New("away"), map[string]string{"later": "always", "ratio": "always"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			of := described(t, r, test.history, test.failure)
			for name, want := range test.want {
				if got := since(of[name]); got != want || of[name].Filled != nil {
					t.Errorf("%s is complete since %s, want %s; filled %v, want none", name, got, want, of[name].Filled)
				}
			}
		})
	}
}
