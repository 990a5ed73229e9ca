package source

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
)

const smallAvro = `{"type": "record", "name": "R", "fields": [{"name": "s", "type": "string"}, {"name": "n", "type": "long"}]}`

// avroFileOf is a container file of some bytes instead of the blocks.
func avroFileOf(codec, schema string, blocks ...string) []byte {
	text := func(dst []byte, text string) []byte {
		return append(binary.AppendVarint(dst, int64(len(text))), text...)
	}
	out := binary.AppendVarint([]byte("Obj\x01"), 2)
	out = text(text(out, "avro.codec"), codec)
	out = text(text(out, "avro.schema"), schema)
	out = append(append(out, 0), "sixteen bytes..."...)
	for _, b := range blocks {
		out = append(out, b...)
	}
	return out
}

// avroBlock is a block that states a number of records and a number of bytes.
func avroBlock(records, size int64, content string) string {
	return string(binary.AppendVarint(binary.AppendVarint(nil, records), size)) + content + "sixteen bytes..."
}

func packedBlock(records int64, content string) string {
	return avroBlock(records, int64(len(content)), content)
}

// rowsOfAvro reads a whole file.
func rowsOfAvro(content io.Reader) (rows int, err error) {
	table, err := newAvro("in.avro", content)
	for err == nil {
		if _, err = table.Next(); err == nil {
			rows++
		}
	}
	if err == io.EOF {
		err = nil
	}
	return rows, err
}

// A file may claim anything: what it takes is bounded by what it contains, and by the greatest block.
func TestHostileAvroFiles(t *testing.T) {
	const claim = 1 << 40
	zeros := make([]byte, 1<<20)
	deflated := func(mebibytes int) string {
		var out bytes.Buffer
		w, _ := flate.NewWriter(&out, 9)
		for range mebibytes {
			_, _ = w.Write(zeros)
		}
		_ = w.Close()
		return out.String()
	}
	zstandard := func(mebibytes int) string {
		var out bytes.Buffer
		w, _ := zstd.NewWriter(&out)
		for range mebibytes {
			_, _ = w.Write(zeros)
		}
		_ = w.Close()
		return out.String()
	}
	header := string(avroFileOf("null", smallAvro))
	for _, c := range []struct {
		name, content string
		most          uint64 // MiB that are allocated
		want          string
	}{
		{"nothing", "", 1, "in.avro: this is not an Avro container file, or not all of one: it ends early"},
		{"another file", "PK\x03\x04", 1, `in.avro: this is not an Avro container file, or not all of one: it begins with "PK\x03\x04"`},
		{"a key of a TiB", "Obj\x01\x02" + string(binary.AppendVarint(nil, claim)), 1, "in.avro: this is not an Avro container file, or not all of one: a part of 1099511627776 bytes, with room for 4194304"},
		{"entries without end", "Obj\x01" + string(binary.AppendVarint(nil, claim)) + strings.Repeat("\x00", 8<<20), 10, "in.avro: this is not an Avro container file, or not all of one: a part of 0 bytes, with room for -64"},
		{"a number too long", "Obj\x01" + strings.Repeat("\xff", 20), 1, "in.avro: this is not an Avro container file, or not all of one: a number of more than 64 bits"},
		{"no schema", "Obj\x01\x00sixteen bytes...", 1, "in.avro: the schema cannot be read: it is not JSON: EOF"},
		{"a schema of another type", string(avroFileOf("null", `"string"`)), 1, "in.avro: the schema is of type string; records are read from one of type record"},
		{"an unknown codec", string(avroFileOf("bzip2", smallAvro)), 1, `in.avro: its codec is "bzip2"; null, deflate, snappy and zstandard are read`},
		{"a block of a TiB", header + avroBlock(1, claim, ""), 1, "in.avro: row 1: it is damaged: a part of 1099511627776 bytes, with room for 67108864"},
		{"a block of 64 MiB that is not there", header + avroBlock(1, 64<<20, ""), 1, "in.avro: row 1: it is damaged: it ends early"},
		{"a text of a TiB", header + packedBlock(1, string(binary.AppendVarint(nil, claim))), 1, "in.avro: row 1: malformed Avro at byte 6 of 6: a value of 1099511627776 bytes, with 0 left"},
		{"records without bytes", header + packedBlock(claim, ""), 1, "in.avro: row 1: malformed Avro at byte 0 of 0: the record ends within a number"},
		{"fewer than no records", header + packedBlock(-1, ""), 1, "in.avro: row 1: it is damaged: a block has -1 records"},
		{"bytes after the last record", header + packedBlock(1, "\x02a\x02b"), 1, "in.avro: row 2: it is damaged: a block has 1 bytes after its last record"},
		{"another marker", header + strings.ReplaceAll(packedBlock(1, "\x02a\x02"), "sixteen", "Sixteen"), 1, "in.avro: row 1: it is damaged: a block does not end with the file's marker"},
		{"deflated zeros", string(avroFileOf("deflate", smallAvro, packedBlock(1, deflated(70)))), 400, "in.avro: row 1: it is damaged: a block cannot be decompressed: it has more than 67108864 bytes"},
		{"deflated rubbish", string(avroFileOf("deflate", smallAvro, packedBlock(1, "\xff\xff"))), 1, "in.avro: row 1: it is damaged: a block cannot be decompressed: flate: corrupt input before offset 1"},
		{"half a deflated block", string(avroFileOf("deflate", smallAvro, packedBlock(1, deflated(1)[:9]))), 4, "in.avro: row 1: it is damaged: a block cannot be decompressed: it ends early"},
		{"Zstandard's zeros", string(avroFileOf("zstandard", smallAvro, packedBlock(1, zstandard(70)))), 400, "in.avro: row 1: it is damaged: a block cannot be decompressed: decompressed size exceeds configured limit"},
		{"Snappy's claim", string(avroFileOf("snappy", smallAvro, packedBlock(1, "\x80\x80\x80\x10\x00\x00\x00\x00"))), 1, "in.avro: row 1: it is damaged: a block cannot be decompressed: 4 bytes claim to be 33554432"},
		{"Snappy without a checksum", string(avroFileOf("snappy", smallAvro, packedBlock(1, "\x00"))), 1, "in.avro: row 1: it is damaged: a block cannot be decompressed: it ends early"},
		{"Snappy with another's checksum", string(avroFileOf("snappy", smallAvro, packedBlock(1, string(snappy.Encode(nil, []byte("\x02a\x02")))+"none"))), 1,
			"in.avro: row 1: it is damaged: a block cannot be decompressed: its checksum is wrong"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := rowsOfAvro(strings.NewReader(c.content))
		runtime.ReadMemStats(&after)
		if fmt.Sprint(err) != c.want {
			t.Errorf("%s: got error %v, want %s", c.name, err, c.want)
		}
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > c.most {
			t.Errorf("%s: %d bytes of a file took %d MiB, want at most %d", c.name, len(c.content), used, c.most)
		}
	}
}

// An error of reading is not taken for a damaged file.
func TestAvroReadErrors(t *testing.T) {
	whole := avroFileOf("null", smallAvro, packedBlock(1, "\x02a\x02"))
	lost := errors.New("the connection is lost")
	for keep, want := range map[int]string{2: "in.avro: the connection is lost", 20: "in.avro: the connection is lost", len(whole) - 3: "in.avro: row 1: the connection is lost"} {
		_, err := rowsOfAvro(io.MultiReader(bytes.NewReader(whole[:keep]), iotest.ErrReader(lost)))
		if fmt.Sprint(err) != want || !errors.Is(err, lost) {
			t.Errorf("after %d bytes: got error %v, want %s", keep, err, want)
		}
	}
}

// Files of another program are read, whatever their codec.
func TestAvroCodecs(t *testing.T) {
	for name, codec := range map[string]ocf.Codec{
		"null": nil, "deflate": ocf.DeflateCodec(9), "snappy": ocf.SnappyCodec(), "zstandard": ocf.MustZstdCodec(nil, nil),
	} {
		var out bytes.Buffer
		options := []ocf.WriterOpt{ocf.WithBlockCount(100)}
		if codec != nil {
			options = append(options, ocf.WithCodec(codec))
		}
		w, err := ocf.NewWriter(&out, avro.MustParse(smallAvro), options...)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1234 {
			if err := w.Encode(map[string]any{"s": strings.Repeat("x", i), "n": int64(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		table, err := newAvro("in.avro", &out)
		if err != nil {
			t.Fatal(name, err)
		}
		for i := range 1234 {
			cells, err := table.Next()
			if err != nil || len(cells[0].Text) != i || string(cells[1].Text) != fmt.Sprint(i) {
				t.Fatalf("%s: row %d is %v, error %v", name, i+1, cells, err)
			}
		}
		if _, err := table.Next(); err != io.EOF {
			t.Errorf("%s: got error %v, want the end", name, err)
		}
	}
}

// FuzzAvroFile reads any file; whatever another reader makes of it, this one does, too, or refuses it.
func FuzzAvroFile(f *testing.F) {
	f.Add(goldenAvro(f))
	f.Add(avroFileOf("null", smallAvro, packedBlock(1, "\x02a\x02"), packedBlock(2, "\x02a\x02\x02b\x01")))
	f.Add(avroFileOf("snappy", smallAvro, packedBlock(1, "\x80\x80\x80\x10\x00\x00\x00\x00")))
	f.Fuzz(func(t *testing.T, content []byte) {
		rows, err := rowsOfAvro(bytes.NewReader(content))
		if err != nil {
			return
		}
		other, err := ocf.NewReader(bytes.NewReader(content))
		if err != nil {
			return // it checks schemas more strictly
		}
		for n := 0; ; n++ {
			var v any
			err := other.Decode(&v)
			if err == nil {
				continue
			}
			if err == io.EOF && n != rows {
				t.Fatalf("%d rows, want %d", rows, n)
			}
			return
		}
	})
}
