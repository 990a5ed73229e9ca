package pipeline

import (
	"context"
	"errors"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/enrich"
	"github.com/weir-stream/weir/state"
)

// Schemas supplies the schemas that records name, and registers those of enriched events.
type Schemas interface {
	enrich.Registry
	// Supply gives a format the schema that it lacks, or makes it refuse records with a schema that does not exist. If
	// it returns an error, it has done neither and must be called again. It returns quickly.
	Supply(context.Context, *record.MissingSchema) error
}

// mapWithSchemas maps a record, and fetches the schema that it names if the schema is new. If it is unavailable, the
// partition remembers what it lacks, and the error says why.
func (w *worker) mapWithSchemas(rec *record.Record, rangeIndex int, b *state.Batch) (features.Outcome, error) {
	for {
		out, err := w.mapper.Map(rec, rangeIndex, b)
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

// awaitSchema stops the current partition at a record whose schema is unavailable. Earlier records
// are applied; see meetBroken.
func (w *worker) awaitSchema(offset int64, err error) {
	p := w.from
	p.position = offset
	w.current.extend(p)
	w.current.keep(p)
	w.due = true
	w.stop(p, err)
}

// supplied reports whether the partition has the schema that it lacked; if not, it keeps waiting, and is not read.
func (w *worker) supplied(ctx context.Context, p *assignedPartition) bool {
	if p.lacks == nil {
		return true
	}
	if err := w.cfg.Schemas.Supply(ctx, p.lacks); err != nil {
		w.fail(p, err)
		return false
	}
	return true
}
