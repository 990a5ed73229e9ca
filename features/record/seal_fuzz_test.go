package record_test

import (
	"bytes"
	"testing"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

// FuzzUnseal reads any headers, which whoever may write to a topic chooses: without the secret none are taken for
// Weir's.
func FuzzUnseal(f *testing.F) {
	seal := state.NewSeal([]byte("secret"))
	f.Add("topic", []byte("key"), []byte("value"), []byte("weir-copy\x00t 0 1 2\x00weir-seal\x001 AAAAAAAAAAAAAAAAAAAAAA"))
	f.Add("topic", []byte(nil), []byte{}, []byte("weir-reason\x00late\x00weir-topic\x00t\x00weir-seal\x0018446744073709551617 "))
	f.Fuzz(func(t *testing.T, topic string, key, value, text []byte) {
		var headers record.HeaderList
		for parts := bytes.Split(text, []byte{0}); len(parts) > 1; parts = parts[2:] {
			headers = append(headers, record.Header{Key: string(parts[0]), Value: parts[1]})
			record.ParseCopy(parts[1])
		}
		if ours, others := record.Unseal(seal, topic, key, value, headers); ours != nil || len(others) != len(headers) {
			t.Fatalf("%v is taken for Weir's", ours)
		}
	})
}
