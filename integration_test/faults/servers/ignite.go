package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/ignitetest"
	"github.com/weir-stream/weir/store/ignite/thin"
)

// Ignite is a cluster of three nodes of Ignite, and one that may join them, which all rounds share; each has a cache of its own.
type Ignite struct {
	*ignitetest.Cluster
	Client *thin.Client
}

// NewIgnite starts the nodes, which stop when the kit is closed.
func NewIgnite(k *Kit) *Ignite {
	c := ignitetest.NewWith(k, &ignitetest.Options{Nodes: 3, Spares: 1})
	made := &Ignite{c, thin.New(thin.Config{Addresses: c.Addresses(), Login: thin.Login{Timeout: 2 * time.Second}, Request: 10 * time.Second})}
	k.Cleanup(func() { _ = made.Client.Close() })
	return made
}

// Settings returns the flags with which processes of Weir reach it.
func (i *Ignite) Settings() []string {
	return []string{"--store.type", "ignite", "--ignite.addresses", strings.Join(i.Addresses(), ","), "--ignite.request_timeout", "3s", "--ignite.dial_timeout", "1s"}
}

// AwaitCopies waits until all nodes work together, and all partitions have all of their copies again. It starts nodes
// that have ended, and restarts those that others have gone on without.
func (i *Ignite) AwaitCopies(k *Kit) {
	testkit.Eventually(k, 3*time.Minute, "Ignite has all copies", func() (bool, string) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for _, n := range i.Nodes {
			if n.Ended() {
				if err := n.Start(); err != nil {
					return false, err.Error()
				}
			}
		}
		i.Client.Try(ctx)
		for _, n := range i.Client.Nodes() {
			if n.Err != nil {
				return false, n.Err.Error()
			}
		}
		moving, err := i.Client.Copies(ctx, "MOVING")
		if split, is := errors.AsType[*thin.SplitError](err); is {
			err = errors.Join(err, i.join(split))
		}
		return err == nil && moving == 0, fmt.Sprintf("%d copies are moving, error %v", moving, err)
	})
}

// join restarts the nodes of all sides but that with most, as an operator does.
func (i *Ignite) join(split *thin.SplitError) (err error) {
	most := slices.MaxFunc(split.Sides, func(a, b []string) int { return cmp.Compare(len(a), len(b)) })
	for _, n := range i.Nodes {
		if !slices.Contains(most, n.Address) {
			err = errors.Join(err, n.Kill(), n.Start())
		}
	}
	return err
}
