package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// Object is an open object, a fs.File that can be read from any position. Once the object is replaced in the store,
// reads return an error.
type Object struct {
	ctx    context.Context
	store  *store
	bucket string
	key    string
	info   info
	all    stretch // what Read reads
}

// Open opens an object. Its reads end with the context. An error names the object; that of one that
// does not exist is fs.ErrNotExist.
func Open(ctx context.Context, name string) (*Object, error) {
	s, bucket, key, err := connect(ctx, name)
	if err != nil {
		return nil, err
	}
	found, err := s.StatObject(ctx, bucket, key, minio.StatObjectOptions{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, explain(err))
	}
	o := &Object{ctx: ctx, store: s, bucket: bucket, key: key, info: info{path.Base(key), found.Size, found.LastModified, ETag(found.ETag)}}
	o.all = stretch{of: o, end: o.info.size}
	return o, nil
}

// Stat returns what the object was when it was opened. Its Sys is the ETag.
func (o *Object) Stat() (fs.FileInfo, error) { return o.info, nil }

// Read reads on from where the last Read ended. It reads what the store sends, and no more.
func (o *Object) Read(p []byte) (int, error) { return o.all.Read(p) }

// ReadAt reads from a position with a request of its own.
func (o *Object) ReadAt(p []byte, at int64) (int, error) {
	if at < 0 {
		return 0, &Error{fmt.Sprintf("there is no byte %d", at), fs.ErrInvalid}
	}
	part := &stretch{of: o, at: at, end: min(at+int64(len(p)), o.info.size)}
	defer part.close()
	n, err := io.ReadFull(part, p)
	if err == io.ErrUnexpectedEOF { // of ReadFull: the object has ended
		err = io.EOF
	}
	return n, err
}

// Close ends the request that Read reads from.
func (o *Object) Close() error {
	o.all.close()
	return nil
}

// get requests the bytes from one position to another, of the object as it was opened.
func (o *Object) get(ctx context.Context, from, to int64) (io.ReadCloser, error) {
	var options minio.GetObjectOptions
	if err := errors.Join(options.SetRange(from, to-1), options.SetMatchETag(string(o.info.etag))); err != nil {
		return nil, explain(err)
	}
	body, found, header, err := o.store.GetObject(ctx, o.bucket, o.key, options)
	if err != nil {
		return nil, explain(err)
	}
	switch {
	case ETag(found.ETag) != o.info.etag: // the store takes no notice of If-Match
		err = errChanged
	case from > 0 && !strings.HasPrefix(header.Get("Content-Range"), fmt.Sprintf("bytes %d-", from)):
		err = &Error{text: fmt.Sprintf("the store was asked for the bytes from %d on, and sends others", from)}
	default:
		return body, nil
	}
	_ = body.Close()
	return nil, err
}

// maxBroken is how many connections in a row may break before they give a byte.
const maxBroken = 4

// patience is how long a connection may give nothing before it counts as broken.
var patience = time.Minute

// stretch reads the bytes of an object from one position to another. If a connection breaks, it goes on
// with another from there.
type stretch struct {
	of      *Object
	at, end int64
	body    io.ReadCloser      // nil if the next byte must be requested
	cancel  context.CancelFunc // of the request of the body
	broken  int                // connections in a row that gave no byte
}

func (s *stretch) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	for n == 0 && s.at < s.end {
		if s.body == nil {
			var ctx context.Context
			ctx, s.cancel = context.WithCancel(s.of.ctx)
			if s.body, err = s.of.get(ctx, s.at, s.end); err != nil {
				s.cancel()
				return 0, err
			}
		}
		silent := time.AfterFunc(patience, s.cancel)
		n, err = s.body.Read(p[:min(int64(len(p)), s.end-s.at)])
		if !silent.Stop() {
			err = fmt.Errorf("nothing came for %s", patience)
		}
		if s.at += int64(n); n > 0 {
			s.broken = 0
		}
		if err != nil || s.at == s.end {
			s.close()
		}
		if err != nil && n == 0 {
			if s.broken++; s.broken == maxBroken {
				return 0, &Error{text: fmt.Sprintf("the connection broke at byte %d of %d, %d times in a row: %v", s.at, s.end, s.broken, err)}
			}
		}
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (s *stretch) close() {
	if s.body != nil {
		s.cancel()
		_ = s.body.Close()
		s.body = nil
	}
}

// ETag is the version of an object's content.
type ETag string

// info describes an object.
type info struct {
	name     string
	size     int64
	modified time.Time
	etag     ETag
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return 0o444 }
func (i info) ModTime() time.Time { return i.modified }
func (i info) IsDir() bool        { return false }
func (i info) Sys() any           { return i.etag }

var _ interface {
	fs.File
	io.ReaderAt
} = (*Object)(nil)
