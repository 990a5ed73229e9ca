package pipeline

import (
	"context"
	"errors"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/enrich"
)

// Schemas supplies the schemas that records name, and registers those of enriched events.
type Schemas interface {
	enrich.Registry
	// Supply gives a format the schema that it lacks, or makes it refuse records with a schema that does not exist. If
	// it returns an error, it has done neither and must be called again. It returns quickly.
	Supply(context.Context, *record.MissingSchema) error
}

// withSchemas reads a record, and fetches the schema that it names if the schema is new. If it is unavailable, the partition
// lacks it, and the error says why.
func (w *worker) withSchemas(read func() error) (lacks *record.MissingSchema, err error) {
	for {
		err = read()
		missing, is := errors.AsType[*record.MissingSchema](err)
		if !is {
			return nil, err
		}
		if err := w.cfg.Schemas.Supply(w.ctx, missing); err != nil {
			return missing, err
		}
	}
}

// supplied reports whether the partition has the schema that it lacked; if not, it keeps waiting, and is not read.
func (w *worker) supplied(ctx context.Context, p *assignedPartition) bool {
	if p.pause.lacks == nil {
		return true
	}
	if err := w.cfg.Schemas.Supply(ctx, p.pause.lacks); err != nil {
		w.fail(p, err)
		return false
	}
	return true
}
