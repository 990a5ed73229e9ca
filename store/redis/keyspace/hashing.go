package keyspace

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"sync"

	"github.com/weir-stream/weir/state"
)

const (
	// HashingField is the field of the layout that states how keys name entities.
	HashingField = "hash_entities"
	notHashed    = "off"

	hashBytes  = 16
	hashLength = (hashBytes*8 + 5) / 6 // in base64
)

// Hashing names entities in keys by HMAC-SHA256 of their text, cut to 16 bytes, in base64 for URLs. The name of an
// entity of several values is the name of its parent, a '|', and its own hash. Without the secret, entities can be
// neither recognized nor guessed. It is safe for concurrent use.
type Hashing struct {
	hashes      sync.Pool // of hash.Hash
	fingerprint string
}

// NewHashing hashes entities with a secret.
func NewHashing(secret []byte) *Hashing {
	p := &Hashing{hashes: sync.Pool{New: func() any { return hmac.New(sha256.New, secret) }}}
	// A secret is recognized by its hash of a text that is not an entity.
	mark := hmac.New(sha256.New, secret)
	mark.Write([]byte("\x00weir"))
	p.fingerprint = "by key " + hex.EncodeToString(mark.Sum(nil)[:4])
	return p
}

// AppendKey appends the key of an entity's state in a group. A nil Hashing puts the entity itself
// into the key.
func (p *Hashing) AppendKey(dst []byte, tag, group string, entity []byte) []byte {
	if p == nil {
		return AppendKey(dst, tag, group, entity)
	}
	var name [2*hashLength + 1]byte
	return AppendKey(dst, tag, group, p.AppendName(name[:0], entity))
}

// Shard returns the shard of an entity, given its state.EntityHash. With hashing it is the shard of its name in keys,
// see ShardOfName.
func (p *Hashing) Shard(entity []byte, hash uint64, shards int) int {
	if p == nil {
		return state.Shard(hash, shards)
	}
	parent, _ := state.SplitParent(entity)
	var name [hashLength]byte
	return ShardOfName(p.appendHash(name[:0], parent), shards)
}

// ShardOfName returns the shard of an entity, by its name in keys. So the names of keys determine their shards, for any
// number of shards.
func ShardOfName(name []byte, shards int) int { return state.Shard(state.EntityHash(name), shards) }

// AppendName appends the name of an entity in keys.
func (p *Hashing) AppendName(dst, entity []byte) []byte {
	parent, child := state.SplitParent(entity)
	dst = p.appendHash(dst, parent)
	if len(child) == 0 {
		return dst
	}
	return p.appendHash(append(dst, '|'), entity)
}

// appendHash appends the hash of an entity.
func (p *Hashing) appendHash(dst, entity []byte) []byte {
	return base64.RawURLEncoding.AppendEncode(dst, p.sum(entity))
}

// sum returns the hash of an entity.
func (p *Hashing) sum(entity []byte) []byte {
	h := p.hashes.Get().(hash.Hash)
	defer p.hashes.Put(h)
	h.Reset()
	h.Write(entity)
	return h.Sum(make([]byte, 0, sha256.Size))[:hashBytes]
}

// Layout returns the description of the hashing in a namespace's layout.
func (p *Hashing) Layout() string {
	if p == nil {
		return notHashed
	}
	return p.fingerprint
}

// AppendChild appends what distinguishes an entity of several values from its parent's other
// children: its further values, or the bytes of its hash if entities are hashed.
func (p *Hashing) AppendChild(dst, entity []byte) []byte {
	if p == nil {
		_, child := state.SplitParent(entity)
		return append(dst, child...)
	}
	return append(dst, p.sum(entity)...)
}

// AppendChildKey appends the key of a child's state in a group, given the name of its parent in
// keys and the child's from AppendChild.
func (p *Hashing) AppendChildKey(dst []byte, tag, group, parent string, child []byte) []byte {
	dst = append(append(append(dst, tag...), group...), ':')
	dst = append(append(dst, parent...), '|')
	if p == nil {
		return append(dst, child...)
	}
	return base64.RawURLEncoding.AppendEncode(dst, child)
}
