package source

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// avroFile reads the blocks of an Avro object container file, as its specification says:
// https://avro.apache.org/docs/1.12.0/specification/#object-container-files. It holds one block, and makes room only for
// what the file contains, whatever lengths it states.
type avroFile struct {
	in     *bufio.Reader
	schema []byte
	unpack func(block []byte) ([]byte, error)
	sync   [16]byte // ends the header and every block
	packed bytes.Buffer
}

// The greatest header and block of a file, in bytes; the latter packed and unpacked. Programs make blocks of some
// hundred KiB, and at most some MiB.
const (
	maxAvroHeader = 4 << 20
	maxAvroBlock  = 64 << 20
)

// newAvroFile reads the header.
func newAvroFile(in io.Reader) (*avroFile, error) {
	f := &avroFile{in: bufio.NewReader(in)}
	var magic [4]byte
	if _, err := io.ReadFull(f.in, magic[:]); err != nil {
		return nil, cutShort(err)
	}
	if string(magic[:]) != "Obj\x01" {
		return nil, notAvro(fmt.Sprintf("it begins with %q", magic))
	}
	codec, err := f.readHeader()
	if err == nil {
		_, err = io.ReadFull(f.in, f.sync[:])
	}
	if err != nil {
		return nil, cutShort(err)
	}
	return f, f.setCodec(codec)
}

// readHeader reads the map of the header, which names the codec.
func (f *avroFile) readHeader() (codec string, err error) {
	for left := maxAvroHeader; ; {
		count, err := f.long()
		if err != nil || count == 0 {
			return codec, err
		}
		if count < 0 { // a size follows, which only those need who skip
			if _, err := f.long(); err != nil {
				return "", err
			}
			count = -count
		}
		for ; count != 0; count-- {
			var entry [2]string
			for i := range entry {
				text, err := f.take(left)
				if err != nil {
					return "", err
				}
				entry[i] = string(text)
				left -= len(text) + 64 // so there are not millions of empty ones
			}
			switch entry[0] {
			case "avro.schema":
				f.schema = []byte(entry[1])
			case "avro.codec":
				codec = entry[1]
			}
		}
	}
}

// take reads a length, which is at most some bytes, and that many bytes. They are valid until the next call.
func (f *avroFile) take(most int) ([]byte, error) {
	size, err := f.long()
	if err != nil {
		return nil, err
	}
	if size < 0 || size > int64(most) {
		return nil, notAvro(fmt.Sprintf("a part of %d bytes, with room for %d", size, most))
	}
	f.packed.Reset()
	_, err = io.CopyN(&f.packed, f.in, size)
	return f.packed.Bytes(), err
}

// next reads the next block: how many records it has, and their bytes, valid until the next call. It returns io.EOF
// after the last block.
func (f *avroFile) next() (records int64, block []byte, err error) {
	if _, err := f.in.Peek(1); err != nil {
		return 0, nil, err
	}
	if records, err = f.long(); err != nil {
		return 0, nil, cutShort(err)
	}
	if records < 0 {
		return 0, nil, notAvro(fmt.Sprintf("a block has %d records", records))
	}
	packed, err := f.take(maxAvroBlock)
	if err != nil {
		return 0, nil, cutShort(err)
	}
	var sync [16]byte
	if _, err := io.ReadFull(f.in, sync[:]); err != nil {
		return 0, nil, cutShort(err)
	}
	if sync != f.sync {
		return 0, nil, notAvro("a block does not end with the file's marker")
	}
	if records == 0 {
		return 0, nil, nil // its bytes may be none, which not every codec takes
	}
	if block, err = f.unpack(packed); err != nil {
		return 0, nil, notAvro(fmt.Sprintf("a block cannot be decompressed: %v", cutShort(err)))
	}
	return records, block, nil
}

// long reads an integer of Avro's variable length.
func (f *avroFile) long() (int64, error) {
	var u uint64
	for shift := 0; shift < 64; shift += 7 {
		b, err := f.in.ReadByte()
		if err != nil {
			return 0, err
		}
		if u |= uint64(b&0x7f) << shift; b < 0x80 {
			return int64(u>>1) ^ -int64(u&1), nil
		}
	}
	return 0, notAvro("a number of more than 64 bits")
}

// notAvro says what is wrong with a file's content. Other errors are of reading it.
type notAvro string

func (e notAvro) Error() string { return string(e) }

// cutShort replaces the error of data that ends early.
func cutShort(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return notAvro("it ends early")
	}
	return err
}

var errAvroBlock = fmt.Errorf("it has more than %d bytes", maxAvroBlock)

func (f *avroFile) setCodec(name string) error {
	switch name {
	case "", "null":
		f.unpack = func(block []byte) ([]byte, error) { return block, nil }
	case "deflate":
		var from bytes.Reader
		var out bytes.Buffer
		inflate := flate.NewReader(&from)
		f.unpack = func(block []byte) ([]byte, error) {
			from.Reset(block)
			out.Reset()
			if err := inflate.(flate.Resetter).Reset(&from, nil); err != nil {
				return nil, err
			}
			n, err := io.Copy(&out, io.LimitReader(inflate, maxAvroBlock+1))
			if n > maxAvroBlock {
				err = errAvroBlock
			}
			return out.Bytes(), err
		}
	case "snappy":
		f.unpack = unpackSnappy
	case "zstandard":
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxAvroBlock))
		if err != nil {
			return err
		}
		var out []byte
		f.unpack = func(block []byte) ([]byte, error) {
			out, err = d.DecodeAll(block, out[:0])
			return out, err
		}
	default:
		return fmt.Errorf("its codec is %q; null, deflate, snappy and zstandard are read", name)
	}
	return nil
}

// unpackSnappy decompresses a block, which ends with a checksum. Snappy shrinks nothing below a sixty-fourth, so a short
// block cannot claim to be a long one.
func unpackSnappy(block []byte) ([]byte, error) {
	const sum = 4
	if len(block) < sum {
		return nil, io.ErrUnexpectedEOF
	}
	packed, want := block[:len(block)-sum], binary.BigEndian.Uint32(block[len(block)-sum:])
	size, err := snappy.DecodedLen(packed)
	if err != nil {
		return nil, err
	}
	if size > min(maxAvroBlock, 64*len(packed)) {
		return nil, fmt.Errorf("%d bytes claim to be %d", len(packed), size)
	}
	out, err := snappy.Decode(nil, packed)
	if err == nil && crc32.ChecksumIEEE(out) != want {
		err = errors.New("its checksum is wrong")
	}
	return out, err
}
