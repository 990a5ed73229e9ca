package redisstore

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"sync"
)

const (
	// hashEntities is the field of the layout that says how keys name entities.
	hashEntities = "hash_entities"
	notHashed    = "off"

	keyHashBytes  = 16
	keyHashLength = (keyHashBytes*8 + 5) / 6 // in base64
)

// keyHashing stand for entities in keys: HMAC-SHA256 of their text, cut to 16
// bytes, in base64 for URLs. Without the secret nobody can tell who is meant,
// nor try out whom. It is safe for concurrent use.
type keyHashing struct {
	hashes sync.Pool // of hash.Hash
	mark   string
}

// HashEntities has keys hold pseudonyms made with a secret in the place of
// entities' values; a nil secret leaves them as they are. What is kept of an
// entity, such as the members of a set, stays readable.
func HashEntities(secret []byte) Option {
	return func(s *Store) {
		if secret == nil {
			return
		}
		p := &keyHashing{hashes: sync.Pool{New: func() any { return hmac.New(sha256.New, secret) }}}
		// A secret is known again by what it makes of a text that is no entity.
		mark := hmac.New(sha256.New, secret)
		mark.Write([]byte("\x00weir"))
		p.mark = "by key " + hex.EncodeToString(mark.Sum(nil)[:4])
		s.hashing = p
	}
}

// append appends the pseudonym of an entity.
func (p *keyHashing) append(dst, entity []byte) []byte {
	h := p.hashes.Get().(hash.Hash)
	defer p.hashes.Put(h)
	h.Reset()
	h.Write(entity)
	var sum [sha256.Size]byte
	return base64.RawURLEncoding.AppendEncode(dst, h.Sum(sum[:0])[:keyHashBytes])
}

// layout is what a namespace's layout says of them.
func (p *keyHashing) layout() string {
	if p == nil {
		return notHashed
	}
	return p.mark
}
