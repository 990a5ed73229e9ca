package doctor

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/state/progress"
)

type deployments struct {
	list []progress.Applying
	err  error
}

func (d deployments) Applying(context.Context) ([]progress.Applying, error) { return d.list, d.err }

func TestRivals(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	applying := func(group, version string, began, used time.Duration) progress.Applying {
		return progress.Applying{Group: group, Version: version, Began: now.Add(-began), Used: now.Add(-used)}
	}
	const minute = time.Minute
	for name, c := range map[string]struct {
		deployments
		want string
	}{
		"none": {want: "OK no processor applies the namespace now"},
		"one":  {deployments{list: []progress.Applying{applying("a", "v1", time.Hour, minute)}}, `OK consumer group "a" applies the namespace`},
		"rolling": {deployments{list: []progress.Applying{applying("a", "v2", minute, minute), applying("a", "v1", time.Hour, minute)}},
			`OK consumer group "a" applies the namespace`},
		"one that is over": {deployments{list: []progress.Applying{applying("a", "v1", time.Hour, minute), applying("b", "v2", 2*time.Hour, 3*minute)}},
			`OK consumer group "a" applies the namespace`},
		"the same twice": {deployments{list: []progress.Applying{applying("a", "v1", time.Hour, minute), applying("b", "v1", 2*time.Hour, minute)}},
			`WARN consumer groups "a" and "b" apply the same definitions to the namespace: each does all the work: stop all but one, or give them one kafka.group`},
		"rivals": {deployments{list: []progress.Applying{applying("a", "v1", time.Hour, minute), applying("b", "v2", 2*time.Hour, minute)}},
			`FAIL consumer groups "a" and "b" apply different definitions to the namespace: "a" began last, at 2026-03-01T11:00:00Z, and has the partitions; ` +
				`the others have stopped them: stop all but one, or give them namespaces of their own`},
		"refused": {deployments{err: errors.New("NOPERM")}, "FAIL NOPERM: let the user of redis.username run HGETALL"},
	} {
		if diff := cmp.Diff([]string{c.want}, lines(Rivals(t.Context(), c.deployments, now), "deployments")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
