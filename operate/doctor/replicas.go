package doctor

import (
	"context"
	"time"

	redisstore "github.com/weir-stream/weir/store/redis"
)

// ReplicaReader reads from replicas where they do.
type ReplicaReader interface {
	CheckReplicas(ctx context.Context) ([]redisstore.Replica, error)
}

// Replicas looks at the replicas that questions are to be read from. None of its
// findings fails: where no replica does, masters are read.
func Replicas(ctx context.Context, reader ReplicaReader) (f Findings) {
	const subject, instead = "replicas", ": questions go to masters"
	found, err := reader.CheckReplicas(ctx)
	if err != nil {
		f.add(Warn, subject, err.Error()+instead, "see that the servers at redis.addresses run, and whom they let in")
		return f
	}
	var bad Findings
	var stalest time.Duration
	for _, r := range found {
		if r.Err != nil {
			bad.add(Warn, "replica "+r.Address, r.Err.Error(),
				"see that it runs, whom it lets in, and in its INFO replication whose replica it is and whether the link is up")
		}
		stalest = max(stalest, r.Staleness)
	}
	switch n := len(found) - len(bad); {
	case len(found) == 0:
		f.add(Warn, subject, "there is none"+instead, "add one that the Sentinels or the cluster know of, or set redis.read_from: master")
	case n == 0:
		f.add(Warn, subject, "none answers"+instead, "mend them, or set redis.read_from: master")
	default:
		f.ok(subject, "%d of %d answer, no staler than %v", n, len(found), (stalest + time.Millisecond - 1).Truncate(time.Millisecond))
	}
	return append(f, bad...)
}
