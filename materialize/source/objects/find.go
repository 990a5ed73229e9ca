package objects

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"
)

// wild are the characters that make a key a pattern.
const wild = `*?[\`

// Find returns the names of the objects of a name, a folder or a pattern. A folder's objects are
// those whose keys begin with its key and a slash, and have no other slash after that. In a pattern
// *, ? and [] match no slash.
func Find(ctx context.Context, name string) ([]string, error) {
	s, bucket, key, err := connect(ctx, name)
	if err != nil {
		return nil, err
	}
	if at := strings.IndexAny(key, wild); at >= 0 {
		if _, err := path.Match(key, ""); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		matches := func(found string) bool { ok, _ := path.Match(key, found); return ok }
		return s.list(ctx, bucket, key[:at], strings.Contains(key[at:], "/"), matches)
	}
	if key != "" && !strings.HasSuffix(key, "/") {
		if _, err := Open(ctx, name); err == nil {
			return []string{name}, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		key += "/"
	}
	names, err := s.list(ctx, bucket, key, false, func(string) bool { return true })
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("%s: there is no such object, and no folder with objects", name)
	}
	return names, err
}

// list returns the names of the objects whose keys begin with a prefix and match. Unless it goes deep,
// they have no slash after the prefix. A key that ends in a slash is only the mark of a folder.
func (s *store) list(ctx context.Context, bucket, prefix string, deep bool, matches func(key string) bool) (names []string, err error) {
	for o := range s.ListObjectsIter(ctx, bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: deep}) {
		if o.Err != nil {
			return nil, fmt.Errorf("%s%s/%s: %w", scheme, bucket, prefix, explain(o.Err))
		}
		if !strings.HasSuffix(o.Key, "/") && matches(o.Key) {
			names = append(names, scheme+bucket+"/"+o.Key)
		}
	}
	return names, ctx.Err()
}
