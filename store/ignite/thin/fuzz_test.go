package thin

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// FuzzReplies reads any bytes as each kind of reply. What is read takes no more memory than the bytes allow, and is within them.
func FuzzReplies(f *testing.F) {
	text, err := os.ReadFile("testdata/messages.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if recorded, ok := strings.CutPrefix(line, "< "); ok {
			message, err := hex.DecodeString(strings.TrimSpace(recorded))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(message[4:])
		}
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		_, r := parseReply(message, func() {})
		if r.err != nil {
			return
		}
		body := r.decoder
		for _, read := range []func(*decoder) error{
			func(d *decoder) error {
				list, err := values(d, []UUID{{Low: 5}, {High: 1 << 63, Low: 6}})
				for _, v := range list {
					if v != nil && !bytes.Contains(message, v) {
						t.Errorf("%x is not in the message", v)
					}
				}
				return err
			},
			func(d *decoder) error { _, err := owners(d); return err },
			func(d *decoder) error { _, err := nodes(d); return err },
			func(d *decoder) error { _ = oneRow(d); d.timestamp(); return d.err },
		} {
			d := body
			if err := read(&d); err == nil && len(d.bytes) > len(message) {
				t.Errorf("%d bytes of %d are left", len(d.bytes), len(message))
			}
		}
	})
}

// A key is in the partition of its hash, which is that of java.util.UUID.
func TestPartitions(t *testing.T) {
	for u, want := range map[UUID]int{
		{}:                0,
		{Low: 5}:          5,
		{High: 1, Low: 1}: 0,
		{High: 0x0123456789abcdef, Low: 0xfedcba9876543210}: 0,
		{Low: 1 << 32}:    1,
		{Low: 0x12345678}: (0x12345678 ^ 0x1234) % 1024,
	} {
		if got := u.Partition(); got != want {
			t.Errorf("%v is in partition %d, want %d", u, got, want)
		}
	}
	if got := (UUID{0x0123456789abcdef, 0xfedcba9876543210}).String(); got != "01234567-89ab-cdef-fedc-ba9876543210" {
		t.Error(got)
	}
	if javaHash("weir.golden") != -518990240 || javaHash("") != 0 {
		t.Errorf("the hash of a name is %d", javaHash("weir.golden"))
	}
}
