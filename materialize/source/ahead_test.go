package source

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
)

// Reading ahead returns the same bytes, for any lengths of reads, and then the error.
func TestAhead(t *testing.T) {
	torn := errors.New("torn")
	for _, size := range []int{0, 1, aheadBlock - 1, aheadBlock, aheadBlock + 1, 15*aheadBlock + 7} {
		want := make([]byte, size)
		source := rand.NewChaCha8([32]byte{})
		_, _ = source.Read(want)
		a := newAhead(iotest.HalfReader(io.MultiReader(bytes.NewReader(want), iotest.ErrReader(torn))))
		got, err := io.ReadAll(a)
		if !errors.Is(err, torn) || !bytes.Equal(got, want) {
			t.Errorf("read %d of %d bytes, then the error %v", len(got), size, err)
		}
		a.close()
	}
}

// A file may be closed before it has been read to its end.
func TestAheadIsClosed(t *testing.T) {
	a := newAhead(rand.NewChaCha8([32]byte{}))
	if _, err := io.ReadFull(a, make([]byte, aheadBlock+1)); err != nil {
		t.Fatal(err)
	}
	a.close()
}
