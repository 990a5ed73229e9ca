package refill

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"slices"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
)

// maxBytes bounds the memory for an entity with all its children.
const maxBytes = 256 << 20

// errTooMuch is the error for an entity with more state than can be refilled.
var errTooMuch = errors.New("it has more children than can be refilled: they take over 256 MiB")

// content is the content of one key.
type content struct {
	group     string
	entity    string
	series    map[uint32]*state.Series // of the group, by tag
	packed    []byte
	compacted int // length after the last compaction
}

// contents holds the contents of an entity's keys and of its children's, in the order of the records.
type contents struct {
	entity []byte
	group  string
	series map[string]map[uint32]*state.Series // by group and tag
	keys   map[string]*content                 // by group and entity
	bytes  int

	packer    packed.Packer
	compactor packed.Compactor
}

func newContents(w *Want, secret state.Secret) *contents {
	c := &contents{entity: []byte(w.Entity), group: w.Group, series: map[string]map[uint32]*state.Series{}, keys: map[string]*content{}}
	c.packer.Secret, c.compactor.Secret = secret, secret
	for s := range w.Series {
		if c.series[s.Group] == nil {
			c.series[s.Group] = map[uint32]*state.Series{}
		}
		c.series[s.Group][s.Tag()] = s
	}
	return c
}

// take adds the updates of a batch to the entity or its children, and counts their events.
func (c *contents) take(b *state.Batch, now int64) (events int, err error) {
	offset := int64(-1)
	for i := range b.Updates {
		u := &b.Updates[i]
		if !c.has(u, b) {
			continue
		}
		if u.Offset != offset {
			events++
		}
		offset = u.Offset
		key := c.at(b.Mutations[u.From].Series.Group, u.Entity)
		c.bytes -= len(key.packed)
		for j := u.From; j < u.To; j++ {
			mutation := &b.Mutations[j]
			c.packer.Begin(mutation.Series)
			c.packer.Add(mutation)
			key.packed = c.packer.End(key.packed)
		}
		if len(key.packed) > 2*key.compacted+4096 {
			if err := c.compact(key, now); err != nil {
				return events, err
			}
		}
		if c.bytes += len(key.packed); c.bytes > maxBytes {
			return events, errTooMuch
		}
	}
	return events, nil
}

// has reports whether an update is of the entity, or of a child of it.
func (c *contents) has(u *state.EntityUpdate, b *state.Batch) bool {
	of := u.Entity
	if b.Mutations[u.From].Series.Group != c.group {
		of, _ = state.SplitParent(of)
	}
	return bytes.Equal(of, c.entity)
}

// at returns the content of a key.
func (c *contents) at(group string, entity []byte) *content {
	name := group + ":" + string(entity)
	if c.keys[name] == nil {
		c.keys[name] = &content{group: group, entity: string(entity), series: c.series[group]}
	}
	return c.keys[name]
}

// compact compacts the content of a key, pruned as of a moment.
func (c *contents) compact(k *content, now int64) (err error) {
	var nonce packed.Nonce
	_, _ = rand.Read(nonce[:]) // it never fails
	known := func(tag uint32) *state.Series { return k.series[tag] }
	k.packed, err = c.compactor.Compact(nil, k.packed, known, func(uint32) bool { return false }, now, nonce)
	k.compacted = len(k.packed)
	return err
}

// all compacts all keys and lists those of children.
func (c *contents) all(now int64) (own []byte, children []*content, err error) {
	for _, k := range c.keys {
		if err := c.compact(k, now); err != nil {
			return nil, nil, err
		}
		if k.group == c.group {
			own = k.packed
		} else {
			children = append(children, k)
		}
	}
	slices.SortFunc(children, func(a, b *content) int { return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.entity, b.entity)) })
	return own, children, nil
}
