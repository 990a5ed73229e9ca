package follow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/weir-stream/weir/materialize/source"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/tables"
)

// lookEach is how often a file is looked at. One that has changed is read once it was found twice in the same state: writing
// it may take a moment.
const lookEach = 300 * time.Millisecond

// file is a table in a file that is watched.
type file struct {
	*tables.Held
	follower *Follower

	seen, read string // the versions of the file at the last look, and when it was read last
	contents   *tables.Contents
}

func (f *file) follow(ctx context.Context) {
	for retry.Wait(ctx, f.look(ctx)) {
	}
}

// look reads the file if it has changed, and returns how long to wait until the next look.
func (f *file) look(ctx context.Context) time.Duration {
	began := time.Now()
	version, err := versionOf(f.Table.File)
	if err != nil {
		f.seen = ""
		f.follower.fail(f.Held, err)
		return again
	}
	before := f.seen
	f.seen = version
	switch {
	case version == f.read && f.contents != nil:
		f.Whole(f.contents, began)
		return lookEach
	case version == f.read || version != before && before != "" || f.read != "" && version != before:
		return lookEach // it was refused, or is still being written
	}
	contents, err := tables.ReadFile(ctx, f.Table, f.Table.File, false)
	if ctx.Err() != nil {
		return 0
	}
	if now, changed := versionOf(f.Table.File); changed != nil || now != version {
		return lookEach
	}
	f.read, f.contents = version, contents
	if err != nil {
		f.follower.fail(f.Held, err)
		return lookEach
	}
	f.Whole(contents, began)
	f.follower.cfg.Log.Info("a table was read", "table", f.Table.Name, "file", f.Table.File)
	return lookEach
}

// versionOf returns a text that is another one once the file has changed.
func versionOf(name string) (string, error) {
	info, err := os.Stat(name)
	if bad, ok := errors.AsType[*os.PathError](err); ok {
		return "", fmt.Errorf("%s: %w", name, bad.Err)
	}
	if err != nil {
		return "", err
	}
	return source.Version(info), nil
}
