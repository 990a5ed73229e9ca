package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	redisconn "github.com/weir-stream/weir/cmd/weir/connect/redis"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/store/redis/reshard"
)

func newReshardCommand() *cobra.Command {
	var (
		to                     int
		yes, cancel, deleteOld bool
	)
	cmd := &cobra.Command{
		Use:   "reshard --to SHARDS|--cancel|--delete-old",
		Short: "Spread the state over more shards",
		Long: `Spread the state of a namespace over a multiple of its state shards, so that more
Redis masters can share it. Processors and APIs keep running: first all
keys are copied, then those that have changed. Events wait for a fraction of a second
while the last few are copied. Then all processes switch to the new shards within a second. Run it
again if it was killed, or --cancel it.

The keys of the old shards stay until --delete-old deletes them, so Redis needs memory
for two copies of the state.`,
		Example: `  weir reshard --config config/weir.yaml --to 64
  weir reshard --config config/weir.yaml --to 64 --yes
  weir reshard --config config/weir.yaml --delete-old`,
		Args: cobra.NoArgs,
	}
	s := addSettings(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := s.load(cmd)
		if err != nil {
			return err
		}
		if err := onRedis(cfg, "begin another namespace with as many shards as you want, and replay everything into it"); err != nil {
			return err
		}
		client, err := redisconn.Client(cfg)
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }()
		tally := &tally{screen: cmd.ErrOrStderr(), clock: time.Now}
		r := &reshard.Resharder{Redis: client, Namespace: cfg.Namespace, Report: tally.add, Grace: oldKeysStay}
		r.Await = func(ctx context.Context) error { return awaitCopies(ctx, cfg, client, r) }
		out := cmd.OutOrStdout()
		switch {
		case cancel:
			if err := r.Cancel(cmd.Context()); err != nil {
				return err
			}
			_, err = fmt.Fprintln(out, "cancelled: processors go on with the number of shards before")
		case deleteOld:
			err = r.DeleteOld(cmd.Context())
			switch {
			case errors.Is(err, reshard.ErrNoOld): // as after a run of which it is unknown whether it was done
				_, err = fmt.Fprintf(out, "nothing to delete: %v\n", err)
			case err == nil:
				_, err = fmt.Fprintf(out, "deleted %s of the shards before\n", spelling.Counted(tally.of("deleted"), "key"))
			}
		default:
			err = spread(cmd.Context(), out, cfg, r, tally, to, yes)
		}
		return err
	}
	flags := cmd.Flags()
	flags.IntVar(&to, "to", 0, "the number of shards, a multiple of the present one")
	flags.BoolVar(&yes, "yes", false, "do it, rather than show what it would mean")
	flags.BoolVar(&cancel, "cancel", false, "delete what an unfinished run has copied, and keep the old shards")
	flags.BoolVar(&deleteOld, "delete-old", false, "delete the keys of the old shards")
	cmd.MarkFlagsOneRequired("to", "cancel", "delete-old")
	cmd.MarkFlagsMutuallyExclusive("to", "cancel", "delete-old")
	return cmd
}

// oldKeysStay is how long the keys of the old shards stay at least: by then APIs have found the new number, and
// answered earlier questions.
const oldKeysStay = 10 * time.Second

// spread reshards the namespace, or describes the effect.
func spread(ctx context.Context, out io.Writer, cfg *config.Config, r *reshard.Resharder, t *tally, to int, yes bool) error {
	l, err := r.Layout(ctx)
	if err != nil {
		return err
	}
	if err := l.Check(to); err != nil {
		return err
	}
	if l.Forsaken(to) {
		return restart(ctx, out, cfg, r, l, yes)
	}
	if !yes && l.Shards == to {
		text := "--yes only copies again what a failover has lost since.\nThe keys of the old shards are still there: delete them with weir reshard --delete-old"
		if l.Incomplete > 0 {
			text = fmt.Sprintf("%d of them lack keys, which a failover has lost.\nnothing was changed: repeat with --yes to copy them again", l.Incomplete)
		}
		_, err := fmt.Fprintf(out, "namespace %s has %d shards: %s\n", cfg.Namespace, to, text)
		return err
	}
	if !yes {
		_, err := fmt.Fprintf(out, "namespace %s has %d shards, and would have %d. Redis needs memory for its keys twice\n"+
			"until weir reshard --delete-old.\nnothing was changed: repeat with --yes to do it\n", cfg.Namespace, l.Shards, to)
		return err
	}
	if err := r.Spread(ctx, to); err != nil {
		return err
	}
	// A failover that loses the switch restores the old number of shards: running the command again reshards again.
	if err := r.Await(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "namespace %s has %d shards: %s copied. Processors and APIs that run take them within a second.\n"+
		"Then delete the keys of the old shards:\nweir reshard --delete-old\n", cfg.Namespace, to, spelling.Counted(t.of("copied"), "key"))
	return err
}

// restart has the shards begin anew that lack keys which no old shard has any more, or describes the effect.
func restart(ctx context.Context, out io.Writer, cfg *config.Config, r *reshard.Resharder, l reshard.Layout, yes bool) error {
	_, err := fmt.Fprintf(out, "%d of %d shards of namespace %s lack keys: their servers went back to when it was resharded, and the keys of the\n"+
		"old shards are deleted. Processors empty them and read them again, as far as the topics reach back.\n", l.Incomplete, l.Shards, cfg.Namespace)
	if err != nil {
		return err
	}
	ending := "nothing was changed: repeat with --yes to do it"
	if yes {
		if err := r.Spread(ctx, l.Shards); err != nil {
			return err
		}
		ending = "done"
	}
	_, err = fmt.Fprintln(out, ending)
	return err
}

// awaitCopies returns an error if a known replica lacks what was written, or is not connected: that would be lost if it
// replaced its master.
func awaitCopies(ctx context.Context, cfg *config.Config, client redis.UniversalClient, r *reshard.Resharder) error {
	l, err := r.Layout(ctx)
	if err != nil {
		return err
	}
	spread := *cfg
	spread.Shards = max(l.Shards, l.To) // the masters of more shards are those of fewer, and maybe others
	store, err := redisconn.NewStore(&spread, client)
	if err != nil {
		return err
	}
	found, err := store.AwaitReplicas(ctx, replicasWithin)
	if err != nil {
		return fmt.Errorf("ask the masters what their replicas have: %w", err)
	}
	known, err := redisconn.KnownReplicas(ctx, cfg)
	if err != nil {
		return fmt.Errorf("ask which replicas there are: %w", err)
	}
	for _, c := range found {
		c.Known(known)
		if c.Behind > 0 {
			return fmt.Errorf("%d of %d replicas of the Redis master %s are not connected, or lacked what was written for %v: "+
				"run this again when they have caught up, or make Redis forget those that are gone for good "+
				"(CLUSTER FORGET, SENTINEL RESET, redis.replicas)", c.Behind, c.Replicas, c.Master, replicasWithin)
		}
	}
	return nil
}

// tally counts keys, and prints the counts from time to time.
type tally struct {
	screen io.Writer
	clock  func() time.Time

	mu    sync.Mutex
	keys  map[string]int
	shown time.Time
}

// add counts further keys.
func (t *tally) add(doing string, keys int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.keys == nil {
		t.keys, t.shown = map[string]int{}, t.clock()
	}
	t.keys[doing] += keys
	if now := t.clock(); now.Sub(t.shown) >= lineEvery {
		t.shown = now
		_, _ = fmt.Fprintf(t.screen, "%s %s\n", doing, spelling.Counted(t.keys[doing], "key"))
	}
}

// of returns the number of keys to which something was done.
func (t *tally) of(doing string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.keys[doing]
}
