package packed

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"

	"github.com/dchest/siphash"
)

// Secret is what a namespace hashes values and identities with: the key of SipHash-2-4
// (J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", 2012). Whoever
// does not have it cannot make a value that is taken for another one. What was hashed
// with one secret is not found with another. The zero Secret is no secret to anybody.
type Secret struct{ first, second uint64 }

// secretBytes is how long a secret is.
const secretBytes = 16

// NewSecret draws a secret by chance.
func NewSecret() Secret {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:]) // it never fails
	return secretOf(b[:])
}

// ParseSecret reads what Text has written.
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

// Text is the secret as it is kept. It is for no log and no answer.
func (k Secret) Text() string {
	b := binary.LittleEndian.AppendUint64(nil, k.first)
	return base64.StdEncoding.EncodeToString(binary.LittleEndian.AppendUint64(b, k.second))
}

// String keeps the secret out of what is printed.
func (Secret) String() string { return "(secret)" }

// GoString does so too.
func (Secret) GoString() string { return "(secret)" }

func (k Secret) hash(text []byte) uint64 { return siphash.Hash(k.first, k.second, text) }
