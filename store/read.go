package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/features/kinds"
)

// fewFields is the number of fields up to which they are asked for one by one
// of a hash that may hold many more; else the hash is read whole. Looking up a
// field of a small hash walks over it, so asking for many costs more than all.
const fewFields = 64

// Read answers all reads with one pipeline, which is one round trip, or one to
// each of a cluster's nodes concerned. The slices are in the order of the reads;
// reads that stand in one key share one command. It writes nothing.
func (s *Store) Read(ctx context.Context, reads []kinds.Read) ([]kinds.Slice, error) {
	slices := make([]kinds.Slice, len(reads))
	lookups := s.lookups(reads)
	pipe := s.redis.Pipeline()
	for _, l := range lookups {
		l.send(ctx, pipe, reads)
	}
	if len(lookups) > 0 {
		if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("read features: %w", err)
		}
	}
	for _, l := range lookups {
		if err := l.receive(reads, slices); err != nil {
			return nil, fmt.Errorf("read features: key %q: %w", l.key, err)
		}
	}
	return slices, nil
}

// lookup is one state key to be read, and what reads it.
type lookup struct {
	key   string
	reads []int // indices

	// The replies, those of the key's state kind.
	all    *redis.MapStringStringCmd // Tiles, Members
	fields *redis.SliceCmd           // Tiles, where few are wanted
	count  *redis.IntCmd             // Sketches; LastSeen: in the tiles wanted
	after  *redis.IntCmd             // LastSeen
	card   *redis.IntCmd             // LastSeen
	log    *redis.StringCmd          // Logs
}

// lookups gathers the reads by key. A LastSeen or Sketches read has one of its
// own, since its commands depend on the tiles wanted.
func (s *Store) lookups(reads []kinds.Read) []*lookup {
	var list []*lookup
	byKey := make(map[string]*lookup, len(reads))
	var buf []byte
	for i, r := range reads {
		entity := []byte(r.Entity)
		tag := s.tags[kinds.Shard(kinds.EntityHash(entity), len(s.tags))]
		buf = appendStateKey(buf[:0], tag, r.Series, entity, r.First)
		state := r.Series.Measure.State()
		if l := byKey[string(buf)]; l != nil && (state == kinds.Tiles || state == kinds.Members || state == kinds.Logs) {
			l.reads = append(l.reads, i)
			continue
		}
		l := &lookup{key: string(buf), reads: []int{i}}
		byKey[l.key] = l
		list = append(list, l)
	}
	return list
}

// send puts the lookup's commands into the pipeline.
func (l *lookup) send(ctx context.Context, pipe redis.Pipeliner, reads []kinds.Read) {
	r := reads[l.reads[0]]
	switch r.Series.Measure.State() {
	case kinds.Tiles:
		wanted := int64(0)
		for _, i := range l.reads {
			wanted += reads[i].Last - reads[i].First + 1
		}
		if wanted > fewFields || r.Series.GroupTiles > 0 && r.Series.GroupTiles <= 4*fewFields {
			l.all = pipe.HGetAll(ctx, l.key)
			return
		}
		fields := make([]string, 0, wanted)
		for _, i := range l.reads {
			for tile := reads[i].First; tile <= reads[i].Last; tile++ {
				fields = append(fields, string(appendTileField(nil, reads[i].Series, tile)))
			}
		}
		l.fields = pipe.HMGet(ctx, l.key, fields...)
	case kinds.Members:
		l.all = pipe.HGetAll(ctx, l.key)
	case kinds.Sketches:
		base := strings.TrimSuffix(l.key, strconv.FormatInt(r.First, 36))
		keys := make([]string, 0, r.Last-r.First+1)
		for tile := r.First; tile <= r.Last; tile++ {
			keys = append(keys, base+strconv.FormatInt(tile, 36))
		}
		l.count = pipe.PFCount(ctx, keys...)
	case kinds.Logs:
		l.log = pipe.Get(ctx, l.key)
	case kinds.LastSeen:
		last := strconv.FormatInt(r.Last, 10)
		l.count = pipe.ZCount(ctx, l.key, strconv.FormatInt(r.First, 10), last)
		l.after = pipe.ZCount(ctx, l.key, "("+last, "+inf")
		l.card = pipe.ZCard(ctx, l.key)
	}
}

// receive takes the replies into the slices of the lookup's reads.
func (l *lookup) receive(reads []kinds.Read, slices []kinds.Slice) error {
	r := reads[l.reads[0]]
	switch r.Series.Measure.State() {
	case kinds.Tiles:
		if l.fields != nil {
			return l.receiveFields(reads, slices)
		}
		return l.receiveTiles(reads, slices)
	case kinds.Members:
		return l.receiveMembers(reads, slices)
	case kinds.Logs:
		for _, i := range l.reads {
			slices[i].Log = kinds.Log(l.log.Val())
		}
	case kinds.Sketches:
		slices[l.reads[0]].Count = l.count.Val()
	case kinds.LastSeen:
		count, after := l.count.Val(), l.after.Val()
		slices[l.reads[0]] = kinds.Slice{
			Count: count, After: after,
			// Where an older value is kept, none in the window was put out.
			Capped: l.card.Val() >= int64(r.Series.Max) && l.card.Val() == count+after,
		}
	}
	return nil
}

func (l *lookup) receiveFields(reads []kinds.Read, out []kinds.Slice) error {
	n := 0
	for _, i := range l.reads {
		for tile := reads[i].First; tile <= reads[i].Last; tile++ {
			if text, ok := l.fields.Val()[n].(string); ok {
				if err := addCell(&out[i], reads[i].Series, tile, text); err != nil {
					return err
				}
			}
			n++
		}
	}
	return nil
}

func (l *lookup) receiveTiles(reads []kinds.Read, out []kinds.Slice) error {
	for field, text := range l.all.Val() {
		if len(field) < seriesIDLength+1 {
			continue // the cursor of a walk that prunes
		}
		id := field[:seriesIDLength]
		tile, err := strconv.ParseInt(field[seriesIDLength:], 36, 64)
		if err != nil {
			return fmt.Errorf("field %q is no tile", field)
		}
		for _, i := range l.reads {
			if r := &reads[i]; r.Series.ID == id && r.First <= tile && tile <= r.Last {
				if err := addCell(&out[i], r.Series, tile, text); err != nil {
					return err
				}
			}
		}
	}
	for _, i := range l.reads {
		slices.SortFunc(out[i].Cells, func(a, b kinds.Cell) int { return cmp.Compare(a.Tile, b.Tile) })
	}
	return nil
}

// seriesIDLength is the length of a series' ID, with which a tile's field begins.
const seriesIDLength = 5

// addCell adds the number that stands in a tile.
func addCell(s *kinds.Slice, series *kinds.Series, tile int64, text string) (err error) {
	v := kinds.Value{Type: series.Type, Scale: series.Scale}
	if m := series.Measure; m == kinds.CountEvents || m == kinds.CountValues {
		v = kinds.Value{Type: kinds.Int}
	}
	if v.Type == kinds.Float {
		v.Flt, err = strconv.ParseFloat(text, 64)
	} else {
		v.Num, err = strconv.ParseInt(text, 10, 64)
	}
	if err != nil {
		return fmt.Errorf("tile %d of series %s holds %q, which is no %s", tile, series.ID, text, v.Type)
	}
	s.Cells = append(s.Cells, kinds.Cell{Tile: tile, Value: v})
	return nil
}

func (l *lookup) receiveMembers(reads []kinds.Read, slices []kinds.Slice) error {
	for field, tiles := range l.all.Val() {
		if field == cursorField {
			continue
		}
		for _, i := range l.reads {
			met, err := metWithin(tiles, reads[i].First, reads[i].Last)
			if err != nil {
				return fmt.Errorf("member %q: %w", field, err)
			}
			if met {
				slices[i].Members = append(slices[i].Members, memberOf(field))
			}
		}
	}
	return nil
}

// metWithin says whether one of a member's tiles lies in the bounds. They stand
// as the newest one and the gaps to the older ones; see apply.lua.
func metWithin(tiles string, first, last int64) (bool, error) {
	var tile int64
	for newest := true; ; newest = false {
		text, older, more := strings.Cut(tiles, ",")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return false, fmt.Errorf("%q is no list of tiles", tiles)
		}
		if newest {
			tile = n
		} else {
			tile -= n
		}
		if tile < first {
			return false, nil
		}
		if tile <= last {
			return true, nil
		}
		if !more {
			return false, nil
		}
		tiles = older
	}
}
