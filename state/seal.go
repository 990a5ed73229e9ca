package state

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
)

// Seal is the key with which Weir proves that it has written something to a topic, where anyone may write. Only those
// that have the secret can make or check a proof. The zero Seal proves nothing. It must not appear in logs or answers.
type Seal struct {
	key   [sha256.Size]byte
	given bool
}

// NewSeal derives a seal from a secret, which may serve other purposes as well.
func NewSeal(secret []byte) Seal {
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write([]byte("weir seals what it writes to topics")) // it never fails
	s := Seal{given: true}
	mac.Sum(s.key[:0])
	return s
}

// Secret returns a secret of the namespace for hashes that are not stored.
func (s Seal) Secret() Secret {
	mac := hmac.New(sha256.New, s.key[:])
	_, _ = mac.Write([]byte("weir hashes what it holds in memory"))
	return secretOf(mac.Sum(nil))
}

// sealBytes is the length of a proof. To guess one takes 2^127 attempts.
const sealBytes = 16

// Sign returns the proof of a list of texts, as text. Empty and absent ones are the same.
func (s Seal) Sign(texts ...[]byte) string {
	mac := hmac.New(sha256.New, s.key[:])
	var length [8]byte
	for _, text := range texts {
		binary.LittleEndian.PutUint64(length[:], uint64(len(text)))
		_, _ = mac.Write(length[:])
		_, _ = mac.Write(text)
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:sealBytes])
}

// Proves reports whether a proof is that of a list of texts.
func (s Seal) Proves(proof []byte, texts ...[]byte) bool {
	return s.given && subtle.ConstantTimeCompare(proof, []byte(s.Sign(texts...))) == 1
}

// String keeps the key out of logs.
func (Seal) String() string { return "(seal)" }

// GoString keeps the key out of logs.
func (Seal) GoString() string { return "(seal)" }
