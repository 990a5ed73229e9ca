package definition

import (
	"strings"
	"testing"

	"github.com/weir-stream/weir/state"
)

func TestCollisionOfIDs(t *testing.T) {
	for _, length := range []int{state.SeriesIDLength, 4} {
		l := newLoader()
		hash := l.series.Hash
		l.series.Hash = func(text string, n int) string {
			if n == length {
				return strings.Repeat("x", n)
			}
			return hash(text, n)
		}
		l.collect("test.yaml", []byte(`streams:
  tx: {topic: tx, timestamp: ts, fields: {user: string, device: string}}
features:
  a: COUNT(7d, tx, user)
  b: COUNT(7d, tx, device)
`))
		_, err := l.compile()
		want := `test.yaml:5:6: the state of feature "b" and that of "a" have the same id ` + strings.Repeat("x", length) +
			` by chance; change one of them, such as by its tile or the name of a field`
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
