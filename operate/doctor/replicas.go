package doctor

import (
	"context"
	"time"

	"github.com/weir-stream/weir/internal/reworded"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// ReplicaChecker checks the replicas that questions are read from.
type ReplicaChecker interface {
	CheckReplicas(ctx context.Context) ([]redisstore.Replica, error)
}

// Replicas checks the replicas that questions are read from. No finding is a FAIL: without a usable replica, questions
// read from masters.
func Replicas(ctx context.Context, checker ReplicaChecker) (f Findings) {
	const subject, instead = "replicas", ": questions go to masters"
	found, err := checker.CheckReplicas(ctx)
	if err != nil {
		f.add(Warn, subject, reworded.Connection(err).Error()+instead, "check that the servers at redis.addresses run, and who has access")
		return f
	}
	var bad Findings
	var stalest time.Duration
	for _, r := range found {
		if r.Err != nil {
			bad.unreached(Warn, "replica "+r.Address, r.Err,
				"check that it runs, who has access, and in its INFO replication whose replica it is and whether the link is up")
		}
		stalest = max(stalest, r.Staleness)
	}
	switch n := len(found) - len(bad); {
	case len(found) == 0:
		f.add(Warn, subject, "there is none"+instead, "add one that the Sentinels or the cluster know of, or set redis.read_from: master")
	case n == 0:
		f.add(Warn, subject, "none answers"+instead, "repair them, or set redis.read_from: master")
	default:
		f.ok(subject, "%d of %d answer, no staler than %v", n, len(found), (stalest + time.Millisecond - 1).Truncate(time.Millisecond))
	}
	return append(f, bad...)
}
