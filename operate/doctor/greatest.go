package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/state"
)

const (
	// longKey is the length above which a key is reported, half of the limit for all keys: each
	// question about its entity reads all of it, and so does each compaction.
	longKey = 512 << 10
	// patience bounds the time to scan keys, longKeys the number of keys reported.
	patience = 10 * time.Second
	longKeys = 3
)

// Keys scans the keys of a namespace.
type Keys interface {
	Greatest(ctx context.Context, most int, patience time.Duration) (state.LongKeys, error)
}

// Greatest looks for the longest keys, and names the features with state in them.
func Greatest(ctx context.Context, keys Keys, registry *features.Registry) (f Findings) {
	const subject = "greatest keys"
	found, err := keys.Greatest(ctx, longKeys, patience)
	if err != nil {
		f.unreached(Fail, subject, err, "let the user of redis.username run SCAN, MEMORY USAGE and STRLEN")
		return f
	}
	of := plural(found.Looked, "key")
	if !found.All {
		of = fmt.Sprintf("the first %s that there was time for", of)
	}
	if len(found.Keys) == 0 || found.Keys[0].Bytes < longKey {
		length := int64(0)
		if len(found.Keys) > 0 {
			length = found.Keys[0].Bytes
		}
		f.ok(subject, "of %s the longest has %s", of, kibibytes(length))
		return f
	}
	for _, k := range found.Keys {
		if k.Bytes >= longKey {
			by, features := registry.Held(k.Group)
			f.add(Warn, subject, fmt.Sprintf("of %s, that of %s has %s; it holds %s", of, entityOf(k, by), kibibytes(k.Bytes), stateOf(features)),
				"see with weir state what takes the room; give those features a smaller max, wider tiles, a shorter window or keep, or leave the entity out with where")
		}
	}
	return f
}

func kibibytes(n int64) string { return fmt.Sprintf("%d KiB", (n+1023)/1024) }

// entityOf names the entity of a key by its fields, in the order of its text.
func entityOf(k state.LongKey, by []string) string {
	if by == nil {
		return visible(k.Entity)
	}
	return strings.Join(by, "|") + "=" + visible(k.Entity)
}

// visible returns a text of at most some 60 characters, with invisible ones escaped.
func visible(text string) string {
	const most = 60
	quoted := fmt.Sprintf("%+q", text)
	quoted = quoted[1 : len(quoted)-1]
	if len(quoted) > most {
		return quoted[:most] + "…"
	}
	return quoted
}

// stateOf names some features with state in a key.
func stateOf(names []string) string {
	const most = 5
	switch {
	case len(names) == 0:
		return "state of features that are no longer defined"
	case len(names) > most:
		return fmt.Sprintf("state of %s and %d more features", strings.Join(names[:most], ", "), len(names)-most)
	}
	return "state of " + strings.Join(names, ", ")
}
