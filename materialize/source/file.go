package source

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/materialize/source/objects"
)

// Stdin is the name of the standard input.
const Stdin = "-"

// The formats of files.
const (
	CSV     = "csv"
	NDJSON  = "ndjson"
	Parquet = "parquet"
	Avro    = "avro"
)

// File is a file of history.
type File struct {
	Name        string
	Format      string
	Version     string // see Version; empty for the standard input
	compression string
	open        func() (Content, error) // nil for the standard input
	info        fs.FileInfo             // the same
	file        Content                 // nil for the standard input, and while it is closed
	in          io.Reader
	close       func()
	read        atomic.Int64 // bytes of the file
	size        int64        // 0 if unknown
}

// Content is what an open file holds, on the disk or in an S3-compatible store.
type Content interface {
	fs.File
	io.ReaderAt
}

// OpenContent opens a file, or an object if it is named s3://bucket/key. What is read of an object ends
// with the context. The error names the file.
func OpenContent(ctx context.Context, name string) (Content, error) {
	if objects.Named(name) {
		return objects.Open(ctx, name)
	}
	return os.Open(name)
}

// IsObject says whether a name is that of an object.
func IsObject(name string) bool { return objects.Named(name) }

// Clean returns the shortest equivalent of a file's name. That of an object has no other.
func Clean(name string) string {
	if objects.Named(name) {
		return name
	}
	return filepath.Clean(name)
}

// Version says which content a file has: another file's may be equal, its own is not once it is changed.
func Version(of fs.FileInfo) string {
	etag, _ := of.Sys().(objects.ETag)
	return fmt.Sprint(of.Size(), of.ModTime().UnixNano(), etag)
}

// VersionNow returns the Version of the file or the object that has a name now, without reading it. The error names it.
func VersionNow(ctx context.Context, name string) (string, error) {
	if objects.Named(name) {
		o, err := objects.Open(ctx, name)
		if err != nil {
			return "", err
		}
		info, err := o.Stat()
		return Version(info), err
	}
	info, err := os.Stat(name)
	if bad, ok := errors.AsType[*os.PathError](err); ok {
		err = fmt.Errorf("%s: %w", name, bad.Err)
	}
	if err != nil {
		return "", err
	}
	return Version(info), nil
}

// Failed reports whether an error is one of the disk or of the store, which says nothing about what the file has.
func Failed(err error) bool {
	_, disk := errors.AsType[*os.PathError](err)
	_, store := errors.AsType[*objects.Error](err)
	return disk || store
}

// Open opens a file, see OpenContent. Its extension says its format: .csv, .ndjson, .jsonl, .avro or .parquet, and
// for the first three also its compression, if any: .gz or .zst. The standard input has the given
// format, which cannot be Parquet. The error names the file.
func Open(ctx context.Context, name string, stdin io.Reader, stdinFormat string) (*File, error) {
	f := &File{Name: name, close: func() {}}
	if name == Stdin {
		f.Name, f.Format, f.in = "standard input", stdinFormat, stdin
		if f.Format == Parquet {
			return nil, errors.New("the standard input cannot be a Parquet file, which is read from its end: name the file")
		}
		return f, nil
	}
	format, compression := FormatOf(name)
	if format == "" || (format == Parquet || format == Avro) && compression != "" {
		return nil, fmt.Errorf("%s is none of .csv, .ndjson, .avro and .parquet, the first two also .gz or .zst", name)
	}
	f.Format, f.compression, f.open = format, compression, func() (Content, error) { return OpenContent(ctx, name) }
	if err := f.begin(); err != nil {
		return nil, err
	}
	return f, nil
}

// begin opens the file if it is closed.
func (f *File) begin() error {
	if f.open == nil || f.file != nil {
		return nil
	}
	file, err := f.open()
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && f.info != nil && Version(info) != f.Version {
		err = errors.New("the file was changed meanwhile: it must stay as it is")
	}
	if err != nil {
		_ = file.Close()
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	f.file = file
	if f.info, f.Version = info, Version(info); info.Mode().IsRegular() {
		f.size = info.Size()
	}
	return nil
}

// start begins to read the file, unless that has begun. Parquet is read from any place.
func (f *File) start() error {
	if err := f.begin(); err != nil || f.in != nil || f.Format == Parquet {
		return err
	}
	if err := f.decompress(f.compression); err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	return nil
}

// Pause closes the file until it is read, from its beginning. There may be more files than a process may have open, or
// than there is memory for. What can be read only once, such as the standard input, stays open.
func (f *File) Pause() error {
	if f.info == nil || !f.info.Mode().IsRegular() {
		return nil
	}
	if f.in == nil && objects.Named(f.Name) {
		return nil // nothing is open of an object that is not being read, and opening it again is a request
	}
	f.read.Store(0)
	return f.Close()
}

// FormatOf returns the format by the extension of a file, empty if it is unknown, and the extension
// of its compression, .gz or .zst.
func FormatOf(name string) (format, compression string) {
	if ext := filepath.Ext(name); ext == ".gz" || ext == ".zst" {
		compression, name = ext, strings.TrimSuffix(name, ext)
	}
	switch filepath.Ext(name) {
	case ".csv":
		return CSV, compression
	case ".ndjson", ".jsonl":
		return NDJSON, compression
	case ".parquet":
		return Parquet, compression
	case ".avro":
		return Avro, compression
	default:
		return "", compression
	}
}

// Files are the files of a name, a folder or a pattern, sorted by name. Of a folder or a pattern
// they are those whose names have a format; others are the rest, except what programs write beside
// their data, such as _SUCCESS and .part.crc.
func Files(ctx context.Context, pattern string) (files, others []string, err error) {
	all, err := find(ctx, pattern)
	if err != nil || len(all) == 1 && all[0] == pattern {
		return all, nil, err
	}
	for _, file := range all {
		switch format, _ := FormatOf(file); {
		case format != "":
			files = append(files, file)
		case !strings.ContainsAny(path.Base(filepath.ToSlash(file))[:1], "_."):
			others = append(others, file)
		}
	}
	if len(files) == 0 {
		return nil, nil, fmt.Errorf("%s: there is no .csv, .ndjson, .avro or .parquet", pattern)
	}
	slices.Sort(files)
	slices.Sort(others)
	return files, others, nil
}

// find returns the names of all files of a name, a folder or a pattern.
func find(ctx context.Context, pattern string) ([]string, error) {
	if objects.Named(pattern) {
		return objects.Find(ctx, pattern)
	}
	info, err := os.Stat(pattern)
	if err == nil && info.IsDir() {
		return inFolder(pattern)
	}
	if err == nil || !strings.ContainsAny(pattern, "*?[") {
		return []string{pattern}, nil
	}
	all, err := filepath.Glob(pattern)
	if err != nil {
		err = fmt.Errorf("%s: %w", pattern, err)
	}
	return all, err
}

// inFolder returns the names of all files of a folder, whose own name may look like a pattern.
func inFolder(folder string) (files []string, err error) {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		files = append(files, filepath.Join(folder, e.Name()))
	}
	return files, err
}

func (f *File) decompress(compression string) error {
	switch counted := bufio.NewReaderSize(counter{f}, 1<<16); compression {
	case ".gz":
		unzipped, err := gzip.NewReader(counted)
		if err != nil {
			return early(err)
		}
		f.readAhead(unzipped, func() {})
		return nil
	case ".zst":
		d, err := zstd.NewReader(counted, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return err
		}
		f.readAhead(d, d.Close)
		return nil
	default:
		f.in = counted
		return nil
	}
}

// early replaces the error of compressed data that ends early.
func early(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errors.New("the compressed data ends early: this is not all of the file")
	}
	return err
}

// unpacking reads decompressed data.
type unpacking struct{ io.Reader }

func (u unpacking) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = early(err)
	}
	return n, err
}

// readAhead reads decompressed data ahead, and closes its source with the file.
func (f *File) readAhead(unpacked io.Reader, done func()) {
	a := newAhead(unpacking{unpacked})
	f.in, f.close = a, func() {
		a.close()
		done()
	}
}

// counter counts the bytes that are read from the file.
type counter struct{ f *File }

func (c counter) Read(b []byte) (int, error) {
	n, err := c.f.file.Read(b)
	c.f.read.Add(int64(n))
	return n, err
}

func (c counter) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.f.file.ReadAt(b, at)
	c.f.read.Store(min(c.f.read.Load()+int64(n), c.f.size))
	return n, err
}

// Events reads the file as events of a stream. If stream is nil, the file must have envelopes,
// which name the topics.
func (f *File) Events(stream *record.Stream) (Source, error) {
	if f.Format == NDJSON {
		if err := f.start(); err != nil {
			return nil, err
		}
		return NewEvents(f.Name, f.in), nil
	}
	if stream == nil {
		return nil, fmt.Errorf("%s: name the stream of its events: STREAM=%s", f.Name, f.Name)
	}
	t, err := f.Table()
	if err != nil {
		return nil, err
	}
	return EventsOf(t, stream)
}

// Rows is Events for a stream that depends on the columns of the file: nil for lines of JSON, of which each has its own members.
func (f *File) Rows(streamOf func(columns []string) *record.Stream) (Source, error) {
	if f.Format == NDJSON {
		return f.Events(streamOf(nil))
	}
	t, err := f.Table()
	if err != nil {
		return nil, err
	}
	return EventsOf(t, streamOf(t.Columns()))
}

// Enveloped reports whether the file's first line is an envelope; see NewEvents. Errors of the file are reported when
// it is read.
func (f *File) Enveloped() bool {
	_, ok := unwrap(f.firstLine())
	return ok
}

// firstLine returns the beginning of the first line of JSON, which remains to be read; empty if there is none.
func (f *File) firstLine() []byte {
	if f.Format != NDJSON || f.start() != nil {
		return nil
	}
	const most = 1 << 20 // bytes of the line that are looked at
	ahead := bufio.NewReaderSize(withoutMark(f.in), most)
	f.in = ahead
	for n := 1 << 10; ; n *= 4 {
		start, err := ahead.Peek(min(n, most))
		line, _, whole := bytes.Cut(bytes.TrimLeft(start, "\r\n\t "), []byte("\n"))
		if whole || err != nil || n >= most {
			return line
		}
	}
}

// Table reads the file as a table.
func (f *File) Table() (Table, error) {
	if err := f.start(); err != nil {
		return nil, err
	}
	switch f.Format {
	case CSV:
		return NewCSV(f.Name, f.in)
	case NDJSON:
		return newJSONTable(f.Name, f.in)
	case Avro:
		return newAvro(f.Name, f.in)
	default:
		if objects.Named(f.Name) {
			return newParquet(f.Name, counter{f}, f.size, parquet.ReadBufferSize(objectBuffer))
		}
		return newParquet(f.Name, counter{f}, f.size)
	}
}

// Read returns how many bytes of the file have been read, and its size, 0 if unknown.
func (f *File) Read() (read, size int64) { return f.read.Load(), f.size }

// Same reports whether a name refers to the file.
func (f *File) Same(name string) bool {
	if f.info == nil || objects.Named(name) {
		return f.Name == name
	}
	other, err := os.Stat(name)
	return err == nil && os.SameFile(f.info, other)
}

// Is reports whether another file is the same, without asking the disk.
func (f *File) Is(other *File) bool {
	if f.info == nil || other.info == nil || objects.Named(f.Name) || objects.Named(other.Name) {
		return f.Name == other.Name
	}
	return os.SameFile(f.info, other.info)
}

// Close closes the file.
func (f *File) Close() error {
	f.close()
	file := f.file
	if f.close, f.file, f.in = func() {}, nil, nil; file == nil {
		return nil
	}
	return file.Close()
}
