package record_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

// What was sealed is read as it was written, and nothing of a record that was changed is taken for Weir's.
func TestSealsProveWhatWasWritten(t *testing.T) {
	seal := state.NewSeal([]byte("secret"))
	text := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"", "a", record.SealHeader, record.CopyHeader, "foreign-weir-seal", "1 x", strings.Repeat("b", 300)}).Draw(t, "text")
	})
	rapid.Check(t, func(t *rapid.T) {
		var headers record.HeaderList
		for range rapid.IntRange(1, 6).Draw(t, "headers") {
			headers = append(headers, record.Header{Key: text.Draw(t, "key"), Value: []byte(text.Draw(t, "value"))})
		}
		topic, key, value, n := text.Draw(t, "topic"), []byte(text.Draw(t, "key")), []byte(text.Draw(t, "value")), rapid.IntRange(1, len(headers)).Draw(t, "ours")
		all := append(headers[:len(headers):len(headers)], record.SealOf(seal, topic, key, value, headers, n))
		ours, others := record.Unseal(seal, topic, key, value, all)
		if own := len(headers) - n; cmp.Diff(headers[own:], ours) != "" || !cmp.Equal(others, headers[:own]) {
			t.Fatalf("got %v and %v", ours, others)
		}
		changed := append(record.HeaderList{}, all...)
		at := rapid.IntRange(0, len(all)-1).Draw(t, "at")
		switch rapid.IntRange(0, 5).Draw(t, "change") {
		case 0:
			topic += "x"
		case 1:
			key = append(key, 'x')
		case 2:
			value = append(value, 'x')
		case 3:
			changed[at].Key += "x"
		case 4:
			changed[at].Value = append([]byte("x"), changed[at].Value...)
		case 5:
			changed = append(changed[:at], changed[at+1:]...)
		}
		if ours, others := record.Unseal(seal, topic, key, value, changed); ours != nil || len(others) != len(changed) {
			t.Fatalf("of a changed record %v is taken for ours", ours)
		}
	})
}

// Names of a record's own headers are never those of Weir's in a dead letter, and can be told again.
func TestForeignNames(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "trace": "trace", "weird": "weird", "weir-": "foreign-weir-", "weir-receipt": "foreign-weir-receipt", "WEIR-seal": "WEIR-seal",
		"foreign-weir-seal": "foreign-foreign-weir-seal", "foreign-trace": "foreign-trace", "foreign-": "foreign-",
	} {
		if got := record.Foreign(name); got != want || record.Native(got) != name {
			t.Errorf("Foreign(%q) = %q, and back %q; want %q", name, got, record.Native(got), want)
		}
	}
}
