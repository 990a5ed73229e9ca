package fetch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestMisplacedBatch(t *testing.T) {
	batch := func(base int64, values ...string) testBatch { return testBatch{base: base, records: run(values...)} }
	epoch := func(b testBatch, epoch byte) testBatch {
		b.afterCRC = func(raw []byte) { raw[15] = epoch }
		return b
	}
	states := func(first, last int64, but string) string {
		return fmt.Sprintf("misplaced batch: it states the offsets %d to %d, which no checksum covers, but %s", first, last, but)
	}
	for name, test := range map[string]struct {
		from      int64
		aligned   bool
		misplaced *misplacedError
		log       []testBatch // whose last is cut to its header if cut is set
		cut       bool
		end       int64 // of the log, 0: unknown
		want      []string
		next      int64
		absent    int64
		reason    string // "" if nothing is wrong
		skipTo    int64
	}{
		"after the next one": {
			log:  []testBatch{batch(0, "a", "b"), batch(1000, "c", "d"), batch(4, "e")},
			want: []string{"0:a", "1:b"}, next: 2, reason: states(1000, 1001, "the batch after it begins at 4"), skipTo: 4,
		},
		"after the next one, at the position": {
			from: 2, log: []testBatch{batch(1000, "c", "d"), batch(4, "e")},
			next: 2, reason: states(1000, 1001, "the batch after it begins at 4"), skipTo: 4,
		},
		"after the next one, which is cut": {
			log: []testBatch{batch(0, "a", "b"), batch(1000, "c", "d"), batch(4, "e")}, cut: true,
			want: []string{"0:a", "1:b"}, next: 2, reason: states(1000, 1001, "the batch after it begins at 4"), skipTo: 4,
		},
		"after the end of the log": {
			log: []testBatch{batch(0, "a", "b"), batch(1000, "c", "d")}, end: 4,
			want: []string{"0:a", "1:b"}, next: 2, reason: states(1000, 1001, "the log ends at 4"), skipTo: 4,
		},
		"after the end of the log, where the position is unknown": {
			from: 2, log: []testBatch{batch(1000, "c", "d")}, end: 4,
			next: 2, reason: states(1000, 1001, "the log ends at 4"), skipTo: -1,
		},
		"before the one before": {
			log:  []testBatch{batch(0, "a", "b"), batch(1, "c", "d"), batch(4, "e")},
			want: []string{"0:a", "1:b"}, next: 2, reason: states(1, 2, "the batch before it ends at 1"), skipTo: 4,
		},
		"before the one before, as the last": {
			log:  []testBatch{batch(0, "a", "b"), batch(1, "c", "d")},
			want: []string{"0:a", "1:b"}, next: 2, reason: states(1, 2, "the batch before it ends at 1"), skipTo: 4,
		},
		"before the position": {
			from: 12, aligned: true, log: []testBatch{batch(0, "a", "b")},
			next: 12, reason: states(0, 1, "12 was asked for"), skipTo: 14,
		},
		"before a position inside of it": {
			from: 13, log: []testBatch{batch(0, "a", "b")},
			next: 13, reason: states(0, 1, "13 was asked for"), skipTo: -1,
		},
		"overlapping the batch that was read before": {
			from: 12, aligned: true, log: []testBatch{batch(11, "a", "b"), batch(14, "c")},
			next: 12, reason: states(11, 12, "a batch that was read before ends at 11"), skipTo: 14,
		},
		"negative": {
			log: []testBatch{batch(0, "a"), {base: math.MinInt64 + 1, records: run("b")}, batch(2, "c")}, want: []string{"0:a"}, next: 1,
			reason: states(math.MinInt64+1, math.MinInt64+1, "there are no such"), skipTo: 2,
		},
		"above all numbers": {
			log: []testBatch{batch(0, "a"), batch(math.MaxInt64, "b", "b"), batch(3, "c")}, want: []string{"0:a"}, next: 1,
			reason: states(math.MaxInt64, math.MinInt64, "there are no such"), skipTo: 3,
		},
		"the last of all numbers": {
			log: []testBatch{batch(0, "a"), batch(math.MaxInt64, "b")}, want: []string{"0:a"}, next: 1,
			reason: states(math.MaxInt64, math.MaxInt64, "there are no such"), skipTo: 2,
		},
		"epoch": {
			log: []testBatch{epoch(batch(0, "a"), 3), epoch(batch(1, "b"), 4), batch(2, "c")}, want: []string{"0:a"}, next: 1,
			reason: states(1, 1, "it also states the leader epoch 4, and its leader's is 3"), skipTo: 2,
		},
		"before the position, and so no longer found": {
			from: 2, misplaced: &misplacedError{at: 2, states: 1}, log: []testBatch{batch(4, "e")}, end: 5,
			next: 2, reason: "misplaced batch: one that states the offset 1 has the offsets 2 to 3, and the broker does not find it there", skipTo: 4,
		},
		"found again": {
			from: 2, misplaced: &misplacedError{at: 2, states: 1000}, log: []testBatch{batch(1000, "c", "d")}, end: 4,
			next: 2, reason: states(1000, 1001, "that was refused before, and nothing follows it yet"), skipTo: -1,
		},
		"at a position that the batch after it claims": {
			from: 2, log: []testBatch{batch(2, "c", "d"), batch(2, "e")},
			next: 2, reason: states(2, 3, "the batch after it begins at 2"), skipTo: -1,
		},
		"two in a row": {
			log:  []testBatch{batch(0, "a", "b"), batch(1000, "c", "d"), batch(2, "e")},
			want: []string{"0:a", "1:b"}, next: 2, reason: states(1000, 1001, "the batch after it begins at 2"), skipTo: 4,
		},
		// Not wrong:
		"refused before, and no longer beyond the end": {
			from: 2, misplaced: &misplacedError{at: 2, states: 5}, log: []testBatch{batch(5, "c", "d"), batch(7, "e")}, end: 8,
			want: []string{"5:c", "6:d", "7:e"}, next: 8, absent: 3,
		},
		"repaired, and another is where it claimed to be": {
			from: 2, misplaced: &misplacedError{at: 2, states: 4}, log: []testBatch{batch(2, "c", "d"), batch(4, "e")}, want: []string{"2:c", "3:d", "4:e"}, next: 5,
		},
		"removed since, as the batch before shows": {
			misplaced: &misplacedError{at: 2, states: 1}, log: []testBatch{batch(0, "a", "b"), batch(4, "e")}, end: 5,
			want: []string{"0:a", "1:b", "4:e"}, next: 5, absent: 2,
		},
		"what compaction left after one set aside": {
			from: 4, misplaced: &misplacedError{at: 2, states: 1}, log: []testBatch{batch(6, "e")}, end: 7, want: []string{"6:e"}, next: 7, absent: 2,
		},
		"set aside before, at what it states": {
			from: 4, misplaced: &misplacedError{at: 2, states: 4}, log: []testBatch{batch(4, "c", "d"), batch(4, "e")}, want: []string{"4:e"}, next: 5, absent: 2,
		},
		"repaired": {from: 2, misplaced: &misplacedError{at: 2, states: 1}, log: []testBatch{batch(2, "c"), batch(3, "d")}, want: []string{"2:c", "3:d"}, next: 4},
		"set aside before, and still found by what it states": {
			from: 4, log: []testBatch{batch(1000, "c", "d"), batch(4, "e")}, want: []string{"4:e"}, next: 5, absent: 2,
		},
		"a transaction set aside before": {
			from: 4, log: []testBatch{control(1000, 7, markAbort), batch(3, "x", "e")}, want: []string{"4:e"}, next: 5, absent: 1,
		},
		"a broker that begins earlier": {
			from: 11, aligned: true, log: []testBatch{batch(6, "a", "b"), batch(8, "c"), batch(9, "d", "e", "f"), batch(12, "g")},
			want: []string{"11:f", "12:g"}, next: 13,
		},
		"what compaction left": {
			from: 2, log: []testBatch{batch(5, "a"), {base: 10, lastDelta: 4}, batch(20, "b")}, end: 21,
			want: []string{"5:a", "20:b"}, next: 21, absent: 3 + 4 + 5,
		},
		"after a gap, where the end is unknown": {from: 2, log: []testBatch{batch(5, "a")}, want: []string{"5:a"}, next: 6, absent: 3},
		"a position inside of a batch":          {from: 4, log: []testBatch{batch(3, "x", "e")}, want: []string{"4:e"}, next: 5},
		"up to the end of the log": {
			from: 2, log: []testBatch{batch(5, "a", "b")}, end: 7, want: []string{"5:a", "6:b"}, next: 7, absent: 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			raw := encode(t, test.log...)
			if test.cut {
				last := test.log[len(test.log)-1].encode(t)
				raw = raw[:len(raw)-len(last)+batchMagicAt+1]
			}
			p := &PartitionData{Topic: "t", Offset: test.from, aligned: test.aligned, misplaced: test.misplaced, highWatermark: test.end, leaderEpoch: 3, records: raw}
			var d Decoder
			got, next, err := decode(&d, p)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			if next != test.next || d.Absent() != test.absent {
				t.Errorf("up to %d with %d absent, want %d and %d", next, d.Absent(), test.next, test.absent)
			}
			scanned, _, scanErr := scan(p)
			if scanned.next != next || (scanErr == nil) != (err == nil) {
				t.Errorf("scanned up to %d with the error %v, but decoded up to %d with the error %v", scanned.next, scanErr, next, err)
			}
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) {
				if test.reason != "" || err != nil {
					t.Errorf("error %v, want %s", err, test.reason)
				}
				return
			}
			if corrupt.Reason.Error() != test.reason || corrupt.Offset != test.next || corrupt.EndOffset != test.skipTo {
				t.Errorf("[%d, %d): %v\nwant [%d, %d): %s", corrupt.Offset, corrupt.EndOffset, corrupt.Reason, test.next, test.skipTo, test.reason)
			}
			if !corrupt.Damaged() || !corrupt.FetchAgain(damagedTries-1) || corrupt.FetchAgain(damagedTries) {
				t.Error("want it to be damage, and to be fetched three times")
			}
		})
	}
}

// A batch that was refused for its leader epoch is taken once that leader is known, also if nothing follows it yet.
func TestNewerLeaderEpochIsTakenOnceItIsKnown(t *testing.T) {
	p := &PartitionData{Topic: "t", leaderEpoch: 3, records: encode(t, testBatch{records: run("a"), afterCRC: func(raw []byte) { raw[15] = 4 }})}
	for _, leader := range []int32{3, 4, -1} {
		p.leaderEpoch = leader
		var d Decoder
		got, _, err := decode(&d, p)
		misplaced, refused := errors.AsType[*misplacedError](err)
		if want := leader == 3; refused != want || len(got) == 1 == want {
			t.Errorf("leader epoch %d: records %v, error %v; want it refused: %v", leader, got, err, want)
		}
		if refused {
			p.misplaced = misplaced
		}
	}
}

// storedLog is a partition as a broker stores it: batches in segments, found by the offsets that they state.
type storedLog struct {
	batches  []storedBatch
	segments []int // the indexes at which segments begin
	end      int64
}

type storedBatch struct {
	truth, size int64 // the offsets that it was written for
	base        int64 // what its header states
	raw         []byte
}

// read answers a request as Kafka does: of the segment that has the offset, from the first batch that, as it states,
// ends at or after the offset. It cuts the answer at a number of bytes, though not the first batch.
func (l *storedLog) read(offset int64, limit int) (raw []byte) {
	segment := 0
	for segment+1 < len(l.segments) && l.batches[l.segments[segment+1]].truth <= offset {
		segment++
	}
	for ; segment < len(l.segments); segment++ {
		end := len(l.batches)
		if segment+1 < len(l.segments) {
			end = l.segments[segment+1]
		}
		for i := l.segments[segment]; i < end; i++ {
			if l.batches[i].base+l.batches[i].size <= offset {
				continue
			}
			limit = max(limit, len(l.batches[i].raw))
			for ; i < end && len(raw) < limit; i++ {
				raw = append(raw, l.batches[i].raw...)
			}
			return raw[:min(len(raw), limit)]
		}
	}
	return nil
}

// gaps returns how many offsets compaction has left out, of some.
func (l *storedLog) gaps(from, to int64) int64 {
	n := to - from
	for _, b := range l.batches {
		n -= max(0, min(b.truth+b.size, to)-max(b.truth, from))
	}
	return n
}

// Whatever a base offset is changed to, no record is skipped or moved in silence: a batch is refused for offsets that
// hold what was lost, or more offsets are counted as absent than there are. If an answer shows both neighbours of the
// batch, nothing else is refused.
func TestNoDamagedOffsetSkipsInSilence(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		log := &storedLog{segments: []int{0}}
		whole := rapid.Bool().Draw(t, "whole answers")
		for i := range rapid.IntRange(2, 12).Draw(t, "batches") {
			if rapid.IntRange(0, 5).Draw(t, "compacted") == 0 {
				log.end += rapid.Int64Range(1, 20).Draw(t, "gap")
			}
			if !whole && i > 0 && rapid.IntRange(0, 4).Draw(t, "new segment") == 0 {
				log.segments = append(log.segments, i)
			}
			values := make([]string, rapid.IntRange(1, 5).Draw(t, "records"))
			for j := range values {
				values[j] = fmt.Sprint(log.end + int64(j))
			}
			size := int64(len(values))
			log.batches = append(log.batches, storedBatch{log.end, size, log.end, testBatch{base: log.end, records: run(values...)}.encode(outer)})
			log.end += size
		}
		start := rapid.Int64Range(0, log.end-1).Draw(t, "start")
		bad := &log.batches[rapid.IntRange(0, len(log.batches)-2).Draw(t, "bad")] // the log goes on after it
		bad.base = rapid.OneOf(
			rapid.Custom(func(t *rapid.T) int64 { return bad.truth ^ 1<<rapid.IntRange(0, 63).Draw(t, "bit") }),
			rapid.Int64Range(0, log.end+10), rapid.Int64(),
		).Draw(t, "base")
		if bad.truth < start && bad.base <= start && start-bad.base < bad.size {
			t.Skip("that it claims the very offset with which reading begins cannot be noticed")
		}
		binary.BigEndian.PutUint64(bad.raw, uint64(bad.base))

		var d Decoder
		var met *misplacedError
		position, aligned, counted := start, false, false
		delivered, refused := map[int64]int64{}, [][2]int64{} // true and other offsets
		for range 100 {
			limit := 1 << 20
			if !whole {
				limit = rapid.IntRange(1, 1000).Draw(t, "limit")
			}
			raw := log.read(position, limit)
			if len(raw) == 0 {
				break
			}
			p := &PartitionData{Offset: position, aligned: aligned, misplaced: met, highWatermark: log.end, records: raw}
			scanned, _, scanErr := scan(p)
			records, next, err := decode(&d, p)
			if scanned.next != next || (scanErr == nil) != (err == nil) {
				t.Fatalf("scanned up to %d, error %v; decoded up to %d, error %v", scanned.next, scanErr, next, err)
			}
			for _, r := range records {
				var offset, truth int64
				if _, err := fmt.Sscanf(r, "%d:%d", &offset, &truth); err != nil {
					t.Fatal(err)
				}
				delivered[truth] = offset
			}
			counted = counted || d.Absent() > log.gaps(position, next)
			aligned = aligned || next > position
			position = next
			met, _ = errors.AsType[*misplacedError](err)
			if corrupt, is := errors.AsType[*CorruptError](err); is {
				if corrupt.EndOffset <= corrupt.Offset {
					return // stopped
				}
				refused = append(refused, [2]int64{corrupt.Offset, corrupt.EndOffset})
				position, aligned = corrupt.EndOffset, false
			}
		}
		compacted := log.gaps(0, log.end) > 0
		for i := range log.batches {
			b := &log.batches[i]
			for truth := max(b.truth, start); truth < min(b.truth+b.size, position); truth++ { // the lag tells of the rest
				offset, found := delivered[truth]
				// Where compaction left room, one that is moved there looks like any other, as long as it overlaps none.
				if found && (offset == truth || compacted) || compacted && !whole {
					continue
				}
				if whole && b != bad && b.truth >= start && !compacted {
					t.Errorf("the record at %d, of a sound batch, is missing or moved to %d", truth, offset)
				}
				if !counted && !slices.ContainsFunc(refused, func(r [2]int64) bool { return r[0] <= truth && truth < r[1] }) {
					t.Errorf("the record at %d is missing or moved to %d, and nothing says so", truth, offset)
				}
			}
		}
		if t.Failed() {
			t.Logf("the batch of offset %d states %d; refused %v", bad.truth, bad.base, refused)
		}
	})
}
