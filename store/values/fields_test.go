package values

import (
	"bytes"
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

// FuzzValues opens a value of any bytes. What can be read is written as it was read.
func FuzzValues(f *testing.F) {
	for _, h := range []header{{}, {lifetime: 5, group: "devic", entity: "d1"}} {
		f.Add(append(h.append(nil), 1, 2))
	}
	for _, held := range [][]byte{{}, {0}, {stateMark}, {stateMark, 0x80}, {stateMark, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, {stateMark, 0, 9, 'a'}, []byte("text")} {
		f.Add(held)
		if _, _, err := open(held); !errors.Is(err, errForeign) {
			f.Errorf("%x: error %v", held, err)
		}
	}
	f.Fuzz(func(t *testing.T, held []byte) {
		h, sections, err := open(held)
		if err != nil {
			return
		}
		again, same, err := open(append(h.append(nil), sections...))
		if err != nil || again != h || !bytes.Equal(same, sections) {
			t.Errorf("%+v with %x was written as %+v with %x: %v", h, sections, again, same, err)
		}
	})
}
