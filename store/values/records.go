package values

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-stream/weir/store/protocol"
)

// records are the records of a store, each one value.
type records struct{ s *Store }

var _ protocol.Engine = records{}

func (r records) Shards() int { return r.s.options.Shards }

func (r records) Name(record int) string {
	switch record {
	case protocol.Plans:
		return "the plans of the namespace"
	case protocol.Used:
		return "the plans in use"
	case protocol.Busiest:
		return "the busiest entities"
	default:
		return fmt.Sprintf("the record of shard %d", record)
	}
}

func (r records) Down(context.Context) error { return r.s.engine.Down() }

func (r records) Read(ctx context.Context, q protocol.Query) []protocol.Found {
	keys := make([]Key, len(q.Records))
	for i, record := range q.Records {
		keys[i] = Key{Shard: record}
	}
	found := make([]protocol.Found, len(keys))
	for i, held := range r.s.engine.Read(ctx, keys) {
		f := &found[i]
		if f.Err = held.Err; f.Err == nil {
			f.Fields, f.Err = parseFields(held.Bytes)
		}
		f.Clock = r.s.engine.Clock(q.Records[i])
	}
	return found
}

func (r records) Names(ctx context.Context, register int) ([]string, error) {
	found := r.Read(ctx, protocol.Query{Records: []int{register}})[0]
	return slices.Collect(maps.Keys(found.Fields)), found.Err
}

// update has a function change the fields of a record; it reports whether it did.
func (r records) update(ctx context.Context, record int, change func(fields map[string]string) bool) (made bool, err error) {
	k := Key{Shard: record}
	var wrong error
	err = r.s.engine.Update(ctx, record, []Key{k}, func(held [][]byte) []Write {
		var fields map[string]string
		if fields, wrong = parseFields(held[0]); wrong != nil {
			return nil
		}
		if made = change(fields); !made {
			return nil
		}
		return []Write{{Key: k, Bytes: appendFields(nil, fields)}}
	})
	if err == nil {
		err = wrong
	}
	return made && err == nil, err
}

func (r records) Change(ctx context.Context, changes []protocol.Change) {
	for i := range changes {
		c := &changes[i]
		c.Made, c.Err = r.update(ctx, c.Record, func(fields map[string]string) bool {
			return c.Make(fields, c.Last, rand.Text(), r.s.engine.Clock(c.Record))
		})
	}
}

// secretField is the field of a record with the secret, in case the layout is lost.
const secretField = "secret"

// begunField is the field of the record of a shard that has begun.
const begunField = "begun"

// Begin empties the shards that have not begun, and records that they have: where servers were lost, the values of a
// shard may be left without its record. The layout may be lost as well: it decides on the secret.
func (r records) Begin(ctx context.Context, shards []int) error {
	if err := r.s.Create(ctx); err != nil {
		return err
	}
	secret, err := r.s.Secret(ctx)
	if err != nil {
		return err
	}
	for _, shard := range shards {
		if err := r.s.engine.Empty(ctx, shard, hasBegun); err != nil {
			return fmt.Errorf("empty shard %d, which has no progress: %w", shard, err)
		}
		_, err := r.update(ctx, shard, func(fields map[string]string) bool {
			fields[begunField], fields[secretField] = "1", secret.Text()
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func hasBegun(record []byte) bool {
	fields, err := parseFields(record)
	return err != nil || fields[begunField] != ""
}

// secret returns the secret in the records of shards, "" if none has begun.
func (r records) secret(ctx context.Context) (text string, err error) {
	q := protocol.Query{}
	for shard := range r.s.options.Shards {
		q.Records = append(q.Records, shard)
	}
	for _, found := range r.Read(ctx, q) {
		if found.Err != nil {
			return "", found.Err
		}
		if of := found.Fields[secretField]; of != "" {
			text = of
		}
	}
	return text, nil
}

func (r records) Servers(context.Context) []*protocol.Server {
	return make([]*protocol.Server, r.s.options.Shards)
}

// A record is packed as its fields by name: the length of a name as a varint, the name, and its value likewise.

var errRecord = errors.New("the record is damaged")

func appendFields(dst []byte, fields map[string]string) []byte {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		for _, text := range [...]string{name, fields[name]} {
			dst = append(binary.AppendUvarint(dst, uint64(len(text))), text...)
		}
	}
	return dst
}

func parseFields(packed []byte) (map[string]string, error) {
	fields := map[string]string{}
	next := func() (text string, ok bool) {
		length, n := binary.Uvarint(packed)
		if n <= 0 || length > uint64(len(packed)-n) {
			return "", false
		}
		text, packed = string(packed[n:n+int(length)]), packed[n+int(length):]
		return text, true
	}
	for len(packed) > 0 {
		name, ok := next()
		value, ok2 := next()
		if !ok || !ok2 {
			return nil, errRecord
		}
		fields[name] = value
	}
	return fields, nil
}
