package values

import (
	"errors"
	"maps"
	"testing"
)

// FuzzFields reads a record of any bytes. What can be read is written as it was read, but for the order and repetitions.
func FuzzFields(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(appendFields(nil, map[string]string{"tx/0": "5:0:", "": "", "now": "17"}))
	f.Add([]byte{1, 'a', 0x80})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 'a'})
	f.Fuzz(func(t *testing.T, packed []byte) {
		fields, err := parseFields(packed)
		if err != nil {
			if !errors.Is(err, errRecord) {
				t.Fatal(err)
			}
			return
		}
		again, err := parseFields(appendFields(nil, fields))
		if err != nil || !maps.Equal(fields, again) {
			t.Errorf("%q was written as %q: %v", fields, again, err)
		}
	})
}

// Bytes that Weir did not write are said to be so.
func TestForeignValues(t *testing.T) {
	for _, held := range [][]byte{{}, {0}, {stateMark}, {stateMark, 0x80}, {stateMark, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, []byte("text")} {
		if _, _, err := open(held); !errors.Is(err, errForeign) {
			t.Errorf("%x: error %v", held, err)
		}
	}
	if lifetime, sections, err := open([]byte{stateMark, 5, 1, 2}); lifetime != 5 || string(sections) != "\x01\x02" || err != nil {
		t.Errorf("lifetime %d, sections %x, error %v", lifetime, sections, err)
	}
}
