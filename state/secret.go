package state

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"unsafe"

	"github.com/dchest/siphash"
)

// Secret keys the hash of a namespace's values and event IDs, SipHash-2-4 (J.-P. Aumasson, D. J. Bernstein, "SipHash: a
// fast short-input PRF", 2012). Without the secret it is infeasible to find two values with the same hash. Values that
// were hashed with one secret cannot be found with another. The zero Secret protects nothing.
type Secret struct{ first, second uint64 }

// secretBytes is the length of a secret.
const secretBytes = 16

// NewSecret makes a random secret.
func NewSecret() Secret {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:]) // it never fails
	return secretOf(b[:])
}

// ParseSecret parses what Text writes.
func ParseSecret(text string) (Secret, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) != secretBytes {
		return Secret{}, errors.New("a secret is 16 bytes in base64")
	}
	return secretOf(b), nil
}

func secretOf(b []byte) Secret {
	return Secret{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
}

// Text returns the secret as it is stored. It must not appear in logs or answers.
func (k Secret) Text() string {
	b := binary.LittleEndian.AppendUint64(nil, k.first)
	return base64.StdEncoding.EncodeToString(binary.LittleEndian.AppendUint64(b, k.second))
}

// String keeps the secret out of logs.
func (Secret) String() string { return "(secret)" }

// GoString keeps the secret out of logs.
func (Secret) GoString() string { return "(secret)" }

// Seal returns the key for what the namespace writes to topics.
func (k Secret) Seal() Seal { return NewSeal([]byte(k.Text())) }

// Hash returns the hash of a value's text.
func (k Secret) Hash(text []byte) uint64 { return siphash.Hash(k.first, k.second, text) }

// HashString is Hash.
func (k Secret) HashString(text string) uint64 {
	return k.Hash(unsafe.Slice(unsafe.StringData(text), len(text))) // read only
}
