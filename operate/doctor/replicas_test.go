package doctor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	redisstore "github.com/weir-stream/weir/store/redis"
)

// replicas are what a check of replicas finds.
type replicas struct {
	found []redisstore.Replica
	err   error
}

func (r replicas) CheckReplicas(context.Context) ([]redisstore.Replica, error) { return r.found, r.err }

func TestReplicas(t *testing.T) {
	good, better := redisstore.Replica{Address: "a:1", Staleness: 12*time.Millisecond + 1}, redisstore.Replica{Address: "b:1", Staleness: time.Millisecond}
	bad := redisstore.Replica{Address: "c:1", Err: errors.New("it is a master")}
	const mend = "WARN it is a master: check that it runs, who has access, and in its INFO replication whose replica it is and whether the link is up"
	for name, c := range map[string]struct {
		replicas replicas
		want     []string
	}{
		"all":  {replicas{found: []redisstore.Replica{good, better}}, []string{"OK 2 of 2 answer, no staler than 13ms"}},
		"one":  {replicas{found: []redisstore.Replica{better, bad}}, []string{"OK 1 of 2 answer, no staler than 1ms", mend}},
		"bad":  {replicas{found: []redisstore.Replica{bad}}, []string{"WARN none answers: questions go to masters: repair them, or set redis.read_from: master", mend}},
		"none": {replicas{}, []string{"WARN there is none: questions go to masters: add one that the Sentinels or the cluster know of, or set redis.read_from: master"}},
		"unknown": {replicas{err: errors.New("no cluster")}, []string{
			"WARN no cluster: questions go to masters: check that the servers at redis.addresses run, and who has access"}},
	} {
		f := Replicas(t.Context(), c.replicas)
		if diff := cmp.Diff(c.want, lines(f, "replica")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for i := range f {
			if c := strings.TrimPrefix(f[i].Subject, "replica"); c != "s" && c != " c:1" {
				t.Errorf("%s: the subject is %s", name, f[i].Subject)
			}
		}
	}
}
