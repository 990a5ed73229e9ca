package doctor

import (
	"context"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/tables"
)

// Tables reads the tables that are in files, as the processes that look up their rows do.
func Tables(ctx context.Context, all []*features.Table) (f Findings) {
	for _, t := range all {
		if t.File == "" {
			continue
		}
		contents, err := tables.ReadFile(ctx, t, t.File, tables.Newest)
		if err != nil {
			f.add(Fail, "table "+t.Name, err.Error(), "correct the file: a process does not become ready without it")
			continue
		}
		rows, _ := contents.Rows()
		f.ok("table "+t.Name, "%s in %s", spelling.Counted(rows, "row"), t.File)
	}
	return f
}
