package follow

import (
	"context"
	"time"

	"github.com/weir-stream/weir/materialize/source"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/tables"
)

// How often a file and an object are looked at; looking at an object is a request, which costs money. A file that has changed is
// read once it was found twice in the same state: writing it may take a moment.
const (
	fileEach   = 300 * time.Millisecond
	objectEach = 5 * time.Second
)

// file is a table in a file or an object that is watched.
type file struct {
	*tables.Held
	follower *Follower
	object   bool
	each     time.Duration // between two looks
	patience time.Duration // with an answer about an object

	seen, read string // the versions of the file at the last look, and when it was read last
	contents   *tables.Contents
}

func newFile(h *tables.Held, f *Follower) *file {
	if source.IsObject(h.Table.File) {
		return &file{Held: h, follower: f, object: true, each: objectEach, patience: 10 * time.Second}
	}
	return &file{Held: h, follower: f, each: fileEach, patience: time.Minute}
}

func (f *file) follow(ctx context.Context) {
	for retry.Wait(ctx, f.look(ctx)) {
	}
}

// look reads the file if it has changed, and returns how long to wait until the next look.
func (f *file) look(ctx context.Context) time.Duration {
	began := time.Now()
	version, err := f.version(ctx)
	if ctx.Err() != nil {
		return 0
	}
	if err != nil {
		f.seen = ""
		f.follower.fail(f.Held, err)
		return max(again, f.each)
	}
	before := f.seen
	f.seen = version
	switch {
	case version == f.read && f.contents != nil:
		f.Whole(f.contents, began)
		return f.each
	case version == f.read || !f.object && version != before && (before != "" || f.read != ""):
		return f.each // it was refused, or is still being written
	}
	contents, err := tables.ReadFile(ctx, f.Table, f.Table.File, tables.Newest)
	if ctx.Err() != nil {
		return 0
	}
	if now, failure := f.version(ctx); failure != nil || now != version {
		return f.each
	}
	if err != nil && source.Failed(err) { // not because of what the file has: it may be read with the next look
		f.follower.fail(f.Held, err)
		return max(again, f.each)
	}
	f.read, f.contents = version, contents
	if err != nil {
		f.follower.fail(f.Held, err)
		return f.each
	}
	f.Whole(contents, began)
	f.follower.cfg.Log.Info("a table was read", "table", f.Table.Name, "file", f.Table.File)
	return f.each
}

// version returns a text that is another one once the file has changed.
func (f *file) version(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	return source.VersionNow(ctx, f.Table.File)
}
