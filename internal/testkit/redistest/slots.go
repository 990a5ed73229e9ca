package redistest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// slotKeys is how many keys of a slot one command moves.
const slotKeys = 20

// MoveSlot moves a slot from one master of a cluster to another, key by key, as redis-cli does
// while clients work. among lists all masters.
func MoveSlot(ctx context.Context, slot int, from, to *Server, among ...*Server) error {
	return MoveSlotSlowly(ctx, slot, func() {}, "", from, to, among...)
}

// MoveSlotSlowly is MoveSlot with a pause once the slot is migrating, before its first keys move. The key last moves after all
// others, unless it is empty.
func MoveSlotSlowly(ctx context.Context, slot int, pause func(), last string, from, to *Server, among ...*Server) error {
	clients := map[*Server]*redis.Client{}
	for _, server := range append([]*Server{from, to}, among...) {
		if clients[server] == nil {
			clients[server] = redis.NewClient(&redis.Options{Addr: server.addr, ReadTimeout: patience})
			defer clients[server].Close()
		}
	}
	fromID, err := clients[from].ClusterMyID(ctx).Result()
	if err != nil {
		return err
	}
	toID, err := clients[to].ClusterMyID(ctx).Result()
	if err != nil {
		return err
	}
	if err := clients[to].Do(ctx, "cluster", "setslot", slot, "importing", fromID).Err(); err != nil {
		return fmt.Errorf("import slot %d at %s: %w", slot, to.addr, err)
	}
	if err := clients[from].Do(ctx, "cluster", "setslot", slot, "migrating", toID).Err(); err != nil {
		return fmt.Errorf("move slot %d from %s: %w", slot, from.addr, err)
	}
	pause()
	if err := moveKeys(ctx, slot, last, clients[from], to.addr); err != nil {
		return err
	}
	// The receiver goes first, so that no node sees the slot without an owner.
	for _, server := range append([]*Server{to, from}, among...) {
		err := clients[server].Do(ctx, "cluster", "setslot", slot, "node", toID).Err()
		if server != to && err != nil && strings.Contains(err.Error(), "only with masters") {
			continue // its replica has taken its place, and learns of the epoch in which the receiver took the slot
		}
		if err != nil {
			return fmt.Errorf("give slot %d to %s: %w", slot, to.addr, err)
		}
	}
	return awaitEpoch(ctx, clients[to], clients)
}

// awaitEpoch waits until all servers know the epoch in which one of them took a slot. A server that
// does not know it may take the slot back in the same epoch, and then the node IDs decide which of
// the two owns it.
func awaitEpoch(ctx context.Context, taker *redis.Client, clients map[*Server]*redis.Client) error {
	taken, err := clusterInfo(ctx, taker, "cluster_my_epoch")
	if err != nil {
		return err
	}
	for _, client := range clients {
		for {
			known, err := clusterInfo(ctx, client, "cluster_current_epoch")
			if err != nil {
				return err
			}
			if known >= taken {
				break
			}
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// clusterInfo returns a number from CLUSTER INFO.
func clusterInfo(ctx context.Context, client *redis.Client, name string) (int64, error) {
	info, err := client.ClusterInfo(ctx).Result()
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(info, name+":")
	text, _, _ := strings.Cut(rest, "\r\n")
	return strconv.ParseInt(text, 10, 64)
}

// SlotOwner returns the master that claims to serve the slot of a key, while the others redirect to
// another node. It is nil if none does.
func SlotOwner(ctx context.Context, key string, masters ...*Server) *Server {
	for _, m := range masters {
		client := redis.NewClient(&redis.Options{Addr: m.Addr(), MaxRetries: -1})
		err := client.Exists(ctx, key).Err()
		_ = client.Close()
		if err == nil {
			return m
		}
	}
	return nil
}

// moveKeys moves keys of a slot until none are left, and one of them after all others.
func moveKeys(ctx context.Context, slot int, last string, from *redis.Client, to string) error {
	host, port, err := net.SplitHostPort(to)
	if err != nil {
		return err
	}
	for {
		keys, err := from.ClusterGetKeysInSlot(ctx, slot, slotKeys).Result()
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			return nil
		}
		if others := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return key == last }); len(others) > 0 {
			keys = others
		}
		args := []any{"migrate", host, port, "", 0, patience.Milliseconds(), "replace", "keys"}
		for _, key := range keys {
			args = append(args, key)
		}
		if err := from.Do(ctx, args...).Err(); err != nil {
			return fmt.Errorf("move %d keys of slot %d: %w", len(keys), slot, err)
		}
	}
}
