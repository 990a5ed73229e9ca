package storetest

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/value"
)

// Series that hash: users that a device has met, and the IDs of its events.
var (
	seenUsers = &state.Series{
		ID: "seenx", Group: "devic", By: []string{"device"}, Measure: state.Seen, Type: value.String,
		Tile: day, Keep: 8 * day, GroupKeep: 9 * day, Max: 100, Rate: 0.001,
	}
	ids = &state.Series{ID: "idsxx", Group: "devic", By: []string{"device"}, Measure: state.RememberID, Tile: 1000, Keep: 600_000, GroupKeep: 9 * day, Max: 30}
)

// forged is another text of 16 bytes with the same xxHash.
func forged(t *testing.T, text string) string {
	const prime1, prime2, prime4, prime5 uint64 = 11400714785074694791, 14029467366897019727, 9650029242287828579, 2870177450012600261
	inverse := func(p uint64) uint64 { // modulo 2^64, by Newton
		x := p
		for range 6 {
			x *= 2 - p*x
		}
		return x
	}
	round := func(lane uint64) uint64 { return bits.RotateLeft64(lane*prime2, 31) * prime1 }
	unround := func(h uint64) uint64 { return bits.RotateLeft64(h*inverse(prime1), -31) * inverse(prime2) }
	after := func(lane uint64) uint64 {
		h := prime5 + uint64(len(text))
		return bits.RotateLeft64(h^round(lane), 27)*prime1 + prime4
	}
	first, second := binary.LittleEndian.Uint64([]byte(text)), binary.LittleEndian.Uint64([]byte(text[8:]))
	other := binary.LittleEndian.AppendUint64(nil, first+1)
	other = binary.LittleEndian.AppendUint64(other, unround(after(first+1)^after(first)^round(second)))
	if xxhash.Sum64(other) != xxhash.Sum64String(text) || string(other) == text {
		t.Fatalf("%q was not forged: got %q, want another text with the same hash", text, other)
	}
	return string(other)
}

// meeting is a batch of one event with an ID, in which device "d" meets a user.
func meeting(user, id string) *state.Batch {
	b := &state.Batch{Now: 100 * day, Ranges: []state.PartitionRange{{Partition: transactions, To: 1}}, Series: []*state.Series{events, seenUsers, ids}}
	b.Update(0, 0, []byte("d"))
	b.Add(state.Mutation{Series: events, Tile: 100, Num: 1})
	b.Add(state.Mutation{Series: seenUsers, Tile: 100, Text: &state.Text{Member: []byte(user)}})
	b.Add(state.Mutation{Series: ids, Tile: 100 * day / ids.Tile, Text: &state.Text{Member: []byte(id)}})
	return b
}

// met returns whether "d" has met a user, and how many events it has, pending ones included.
func met(t *testing.T, s store.Reader, pending *state.Batch, user string) (seen bool, count int64) {
	t.Helper()
	found, err := s.ReadOverlay(t.Context(), []state.Read{
		{Series: seenUsers, Entity: "d", First: 93, Last: 100}, {Series: events, Entity: "d", First: 93, Last: 100},
	}, pending)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range found[1].Buckets {
		count += b.Value.Num
	}
	return found[0].Filter != nil && found[0].Filter.Has([]byte(user)), count
}

// testForged checks that a value constructed to have the xxHash of one that occurred is not seen, and that a pending event
// whose ID was constructed so still counts.
func testForged(t *testing.T, s State) {
	const user, id = "device-000000001", "event-0000000001"
	if err := s.Apply(t.Context(), meeting(user, id)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{user: true, forged(t, user): false} {
		if seen, _ := met(t, s, nil, name); seen != want {
			t.Errorf("%q is seen: %v, want %v", name, seen, want)
		}
	}
	for name, want := range map[string]int64{id: 1, forged(t, id): 2} {
		if _, n := met(t, s, meeting(user, name), user); n != want {
			t.Errorf("with a pending event with the ID %q there are %d events, want %d", name, n, want)
		}
	}
}

// testSecrets checks that each namespace hashes values with a secret of its own, which all of its processes know.
func testSecrets(t *testing.T, open Open) {
	t.Run("of two namespaces", func(t *testing.T) {
		first, second := mistaken(t, open(2, 0)), mistaken(t, open(2, 0))
		if len(first) == 0 || slices.Equal(first, second) {
			t.Errorf("both namespaces mistake the users %v for some that were seen; want others, by another secret", first)
		}
	})
	t.Run("of two processes", func(t *testing.T) {
		s := open(2, 0)
		first := applyingStore(t, s)
		second := &applying{s.Another(), s.Another().NewWriter()}
		if err := first.Apply(t.Context(), meeting("u1", "e1")); err != nil {
			t.Fatal(err)
		}
		next := meeting("u2", "e2")
		next.Updates[0].Offset, next.Ranges[0].To = 1, 2
		if err := second.Apply(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		for name, of := range map[string]store.Reader{"the first process": first, "the second process": second, "a process that begins": s.Another()} {
			// Pending events are remembered, so they add nothing, not even their users.
			for user, want := range map[string]bool{"u1": true, "u2": true, "u3": false} {
				for _, id := range []string{"e1", "e2"} {
					pending := meeting(user, id)
					if seen, n := met(t, of, pending, user); seen != want || n != 2 {
						t.Errorf("%s: %s is seen: %v, with %d events; want %v and 2", name, user, seen, n, want)
					}
					before := state.Met{At: pending.Mutations[pending.Updates[0].To-1].Tile * ids.Tile}
					if len(pending.Met) == 0 || slices.ContainsFunc(pending.Met, func(m state.Met) bool { return m != before }) {
						t.Errorf("%s: the event %s was met %v, want %v", name, id, pending.Met, before)
					}
				}
			}
		}
	})
}

// mistaken returns which of many users a filter mistakes for one that was seen: that depends on the secret.
func mistaken(t *testing.T, s Namespace) (users []int) {
	t.Helper()
	coarse := *seenUsers
	coarse.Rate = 0.2
	b := &state.Batch{Now: 100 * day, Ranges: []state.PartitionRange{{Partition: transactions, To: 50}}, Series: []*state.Series{&coarse}}
	for n := range int64(50) {
		b.Update(0, n, []byte("d"))
		b.Add(state.Mutation{Series: &coarse, Tile: 100, Text: &state.Text{Member: fmt.Appendf(nil, "seen %d", n)}})
	}
	if err := applyingStore(t, s).Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	found, err := s.Read(t.Context(), []state.Read{{Series: &coarse, Entity: "d", First: 93, Last: 100}})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 1000 {
		if found[0].Filter.Has(fmt.Appendf(nil, "never seen %d", n)) {
			users = append(users, n)
		}
	}
	return users
}
