package state

import (
	"encoding/hex"
	"fmt"
	"testing"
)

// The hash equals that of the reference implementation, because state outlives a release.
func TestHashIsSipHash(t *testing.T) {
	key, _ := hex.DecodeString("000102030405060708090a0b0c0d0e0f")
	text, _ := hex.DecodeString("000102030405060708090a0b0c0d0e")
	if got, want := secretOf(key).Hash(text), uint64(0xa129ca6149be45e5); got != want {
		t.Errorf("hash %x, want %x", got, want)
	}
}

func TestSecretRoundTrip(t *testing.T) {
	secret := NewSecret()
	read, err := ParseSecret(secret.Text())
	if err != nil || read != secret || secret == NewSecret() {
		t.Errorf("%q was read as %q, error %v", secret.Text(), read.Text(), err)
	}
	if got := fmt.Sprintf("%v %+v %#v %s", secret, secret, secret, &secret); got != "(secret) (secret) (secret) (secret)" {
		t.Errorf("the secret is printed as %s, want (secret)", got)
	}
	for _, text := range []string{"", "AAECAwQFBgcICQoLDA0ODw", "AAECAwQFBgcICQoLDA0O", "*"} {
		if _, err := ParseSecret(text); err == nil || err.Error() != "a secret is 16 bytes in base64" {
			t.Errorf("%q: got error %v", text, err)
		}
	}
}
