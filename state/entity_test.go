package state

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/value"
)

// The values of an entity's text, joined again, are the text.
func TestSplitEntity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringOf(rapid.SampledFrom([]rune(`a|\`))), 1, 4).Draw(t, "values")
		var entity []byte
		var want []string
		for i, text := range texts {
			v := value.Value{Type: value.String, Str: []byte(text)}
			entity = AppendEntity(entity, i == 0, v)
			want = append(want, string(AppendEntity(nil, true, v)))
		}
		if got := SplitEntity(nil, string(entity)); !slices.Equal(got, want) {
			t.Errorf("%q was split into %q, want %q", entity, got, want)
		}
		for i, value := range want {
			if got := Unescape(value); got != texts[i] {
				t.Errorf("%q was unescaped to %q, want %q", value, got, texts[i])
			}
		}
	})
}
