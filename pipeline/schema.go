package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

// Schemas has the schemas that records name.
type Schemas interface {
	// Supply gives a format the schema that it lacks, or has it refuse the records
	// that name one which is nowhere. With an error it has done neither, and is to be
	// called again; it takes no longer than a moment.
	Supply(context.Context, *record.MissingSchema) error
}

// mapWithSchemas maps a record, and fetches the schema that it names if that is the
// first with it. Where it is not to be had now, the partition notes what it lacks, and
// the error says why.
func (w *worker) mapWithSchemas(rec *record.Record, source int, b *state.Batch) (features.Outcome, error) {
	for {
		out, err := w.mapper.Map(rec, source, b)
		missing, lacks := errors.AsType[*record.MissingSchema](err)
		if !lacks {
			return out, err
		}
		if err := w.cfg.Schemas.Supply(w.ctx, missing); err != nil {
			w.from.lacks = missing
			return out, err
		}
	}
}

// awaitSchema stops the partition at hand at a record whose schema is not to be had
// now. What came before it goes its way; see meetBroken.
func (w *worker) awaitSchema(offset int64, err error) {
	p := w.from
	p.position = offset
	w.current.extend(p)
	w.current.keep(p)
	w.due = true
	w.stop(p, err)
}

// supplied says whether the partition has what it lacked; if not, it waits on, and
// is not read meanwhile.
func (w *worker) supplied(ctx context.Context, p *partition) bool {
	if p.lacks == nil {
		return true
	}
	if err := w.cfg.Schemas.Supply(ctx, p.lacks); err != nil {
		p.retryAt = time.Now().Add(p.trouble.Failed(err))
		w.health.set(p.String(), err)
		return false
	}
	return true
}
