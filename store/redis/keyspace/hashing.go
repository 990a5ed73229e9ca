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
	// HashingField is the field of the layout that says how keys name entities.
	HashingField = "hash_entities"
	notHashed    = "off"

	hashBytes  = 16
	hashLength = (hashBytes*8 + 5) / 6 // in base64
)

// Hashing stands for entities in keys: HMAC-SHA256 of their text, cut to 16
// bytes, in base64 for URLs. Without the secret nobody can tell who is meant,
// nor try out whom. It is safe for concurrent use.
type Hashing struct {
	hashes sync.Pool // of hash.Hash
	mark   string
}

// NewHashing hashes entities with a secret.
func NewHashing(secret []byte) *Hashing {
	p := &Hashing{hashes: sync.Pool{New: func() any { return hmac.New(sha256.New, secret) }}}
	// A secret is known again by what it makes of a text that is no entity.
	mark := hmac.New(sha256.New, secret)
	mark.Write([]byte("\x00weir"))
	p.mark = "by key " + hex.EncodeToString(mark.Sum(nil)[:4])
	return p
}

// AppendKey appends the key of what a group keeps of an entity. Where nothing is
// hashed, which is what nil says, the entity itself stands in it.
func (p *Hashing) AppendKey(dst []byte, tag, group string, entity []byte) []byte {
	if p == nil {
		return AppendKey(dst, tag, group, entity)
	}
	var name [hashLength]byte
	return AppendKey(dst, tag, group, p.appendHash(name[:0], entity))
}

// appendHash appends the hash of an entity.
func (p *Hashing) appendHash(dst, entity []byte) []byte {
	return base64.RawURLEncoding.AppendEncode(dst, p.sum(entity))
}

// sum is the hash of an entity.
func (p *Hashing) sum(entity []byte) []byte {
	h := p.hashes.Get().(hash.Hash)
	defer p.hashes.Put(h)
	h.Reset()
	h.Write(entity)
	return h.Sum(make([]byte, 0, sha256.Size))[:hashBytes]
}

// Layout is what a namespace's layout says of them.
func (p *Hashing) Layout() string {
	if p == nil {
		return notHashed
	}
	return p.mark
}

// AppendChild appends what tells an entity of several values from the other children of
// its parent: its further values, or where entities are hashed the bytes of its hash.
func (p *Hashing) AppendChild(dst, entity []byte) []byte {
	if p == nil {
		_, child := state.SplitParent(entity)
		return append(dst, child...)
	}
	return append(dst, p.sum(entity)...)
}

// AppendChildKey appends the key of what a group keeps of a child, by the name of its
// parent in keys and the child's as of AppendChild.
func (p *Hashing) AppendChildKey(dst []byte, tag, group, parent string, child []byte) []byte {
	dst = append(append(append(dst, tag...), group...), ':')
	if p == nil {
		return append(append(append(dst, parent...), '|'), child...)
	}
	return base64.RawURLEncoding.AppendEncode(dst, child)
}
