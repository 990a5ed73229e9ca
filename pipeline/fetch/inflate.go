package fetch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go/compress"
)

// inflater decompresses the payloads of batches, each to at most limit bytes, into memory that
// stays valid until reset, and is reused afterwards.
//
// gzip and lz4 stream through kafka-go's codecs. snappy and zstd do not: kafka-go's readers for them allocate the size
// that the data claims to have, before any limit can be applied.
type inflater struct {
	limit int
	// arena holds the inflated batches one after another. A batch that does not fit gets a new arena; the old one stays
	// for as long as records point into it. After reset the arena is large enough for everything before it.
	arena []byte
	used  int // bytes inflated since reset
	src   bytes.Reader
	zstd  *zstd.Decoder
}

func (f *inflater) reset() {
	if f.used > cap(f.arena) && cap(f.arena) < f.limit {
		f.arena = make([]byte, 0, min(f.used+f.used/4, f.limit))
	}
	f.arena = f.arena[:0]
	f.used = 0
}

// inflate returns the decompressed payload. The codec is one of kafka-go's compress constants.
func (f *inflater) inflate(codec compress.Compression, payload []byte) ([]byte, error) {
	var out []byte
	var err error
	switch codec {
	case compress.Gzip, compress.Lz4:
		f.src.Reset(payload)
		r := codec.Codec().NewReader(&f.src)
		out, err = f.readAll(r)
		r.Close()
	case compress.Snappy:
		out, err = f.snappy(payload)
	case compress.Zstd:
		out, err = f.zstdAll(payload)
	default:
		return nil, fmt.Errorf("unknown compression codec %d", codec)
	}
	if errors.Is(err, errTooLarge) {
		return nil, fmt.Errorf("%w of %d bytes", errTooLarge, f.limit)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", codec, err)
	}
	f.keep(out)
	return out[:len(out):len(out)], nil
}

// tail returns the free end of the arena, with no bytes in it.
func (f *inflater) tail() []byte { return f.arena[len(f.arena):len(f.arena)] }

// grow returns out with room for at least n more bytes.
func (f *inflater) grow(out []byte, n int) []byte {
	if cap(out)-len(out) >= n {
		return out
	}
	const smallest = 64 << 10
	size := max(len(out)+n, min(max(2*cap(out), smallest), f.limit+1))
	return append(make([]byte, 0, size), out...)
}

// keep reserves the bytes of out, which began as the arena's tail.
func (f *inflater) keep(out []byte) {
	f.used += len(out)
	if cap(out) == 0 {
		return
	}
	if tail := f.tail(); cap(tail) > 0 && &tail[:1][0] == &out[:1][0] {
		f.arena = f.arena[:len(f.arena)+len(out)]
		return
	}
	f.arena = out
}

func (f *inflater) readAll(r io.Reader) ([]byte, error) {
	out := f.tail()
	for {
		out = f.grow(out, 1)
		n, err := r.Read(out[len(out):min(cap(out), f.limit+1)])
		out = out[:len(out)+n]
		switch {
		case len(out) > f.limit:
			return nil, errTooLarge
		case err == io.EOF:
			return out, nil
		case err != nil:
			return nil, err
		}
	}
}

// xerialHeader begins what snappy-java's stream writes, followed by two versions of four bytes and then by blocks,
// each after its length. Other producers write a single bare block.
var xerialHeader = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

func (f *inflater) snappy(payload []byte) ([]byte, error) {
	if !bytes.HasPrefix(payload, xerialHeader) {
		return f.snappyBlock(f.tail(), payload)
	}
	const versions = 8
	if len(payload) < len(xerialHeader)+versions {
		return nil, io.ErrUnexpectedEOF
	}
	payload = payload[len(xerialHeader)+versions:]
	out := f.tail()
	for len(payload) > 0 {
		if len(payload) < 4 {
			return nil, io.ErrUnexpectedEOF
		}
		size := int64(binary.BigEndian.Uint32(payload))
		payload = payload[4:]
		if size > int64(len(payload)) {
			return nil, io.ErrUnexpectedEOF
		}
		var err error
		if out, err = f.snappyBlock(out, payload[:size]); err != nil {
			return nil, err
		}
		payload = payload[size:]
	}
	return out, nil
}

// snappyBlock appends one inflated block to out.
func (f *inflater) snappyBlock(out, block []byte) ([]byte, error) {
	size, err := snappy.DecodedLen(block)
	if err != nil {
		return nil, err
	}
	if size > f.limit-len(out) {
		return nil, errTooLarge
	}
	out = f.grow(out, size)
	if _, err = snappy.Decode(out[len(out):len(out)+size], block); err != nil {
		return nil, err
	}
	return out[:len(out)+size], nil
}

func (f *inflater) zstdAll(payload []byte) ([]byte, error) {
	if f.zstd == nil {
		var err error
		// A decoder without a reader has no goroutines and needs no Close.
		f.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(uint64(f.limit)))
		if err != nil {
			return nil, err
		}
	}
	out, err := f.zstd.DecodeAll(payload, f.tail())
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) || len(out) > f.limit {
		return nil, errTooLarge
	}
	return out, err
}
