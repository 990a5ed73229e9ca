package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
)

// Deployments lists the groups that apply definitions to a namespace.
type Deployments interface {
	Applying(ctx context.Context) ([]progress.Applying, error)
}

// Rivals reports consumer groups that apply different definitions to the namespace now.
func Rivals(ctx context.Context, deployments Deployments, now time.Time) (f Findings) {
	const subject = "deployments"
	list, err := deployments.Applying(ctx)
	if err != nil {
		f.unreached(Fail, subject, err, "let the user of redis.username run HGETALL")
		return f
	}
	list = slices.DeleteFunc(list, func(a progress.Applying) bool { return now.Sub(a.Used) >= state.RivalInUse })
	var groups []string
	differ := false
	for _, a := range list {
		if !slices.Contains(groups, a.Group) {
			groups = append(groups, a.Group)
			differ = differ || a.Version != list[0].Version
		}
	}
	switch {
	case len(groups) == 0:
		f.ok(subject, "no processor applies the namespace now")
	case len(groups) == 1:
		f.ok(subject, "consumer group %q applies the namespace", groups[0])
	case !differ:
		f.add(Warn, subject, fmt.Sprintf("consumer groups %s apply the same definitions to the namespace: each does all the work", quoted(groups)),
			"stop all but one, or give them one kafka.group")
	default:
		f.add(Fail, subject, fmt.Sprintf("consumer groups %s apply different definitions to the namespace: %q began last, at %s, and has the partitions; "+
			"the others have stopped them", quoted(groups), groups[0], list[0].Began.UTC().Format(time.RFC3339)),
			"stop all but one, or give them namespaces of their own")
	}
	return f
}

func quoted(names []string) string {
	var list []string
	for _, name := range names {
		list = append(list, fmt.Sprintf("%q", name))
	}
	return strings.Join(list, " and ")
}
