package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/weir-stream/weir/cmd/weir/connect"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/materialize"
	"github.com/weir-stream/weir/pipeline/follow"
	"github.com/weir-stream/weir/tables"
)

// tableFiles returns the files with rows of tables, by their names.
func (o *materializeOptions) tableFiles() (map[string]string, error) {
	files := map[string]string{}
	for _, given := range o.tables {
		name, file, ok := strings.Cut(given, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not TABLE=FILE", given)
		}
		if files[name] != "" {
			return nil, fmt.Errorf("table %s is given twice", name)
		}
		files[name] = file
	}
	return files, nil
}

// tablesOf reads the tables that the columns need.
func (o *materializeOptions) tablesOf(ctx context.Context, cfg *config.Config, r *materialize.Replay, files map[string]string) (query.Tables, error) {
	var all []*tables.Contents
	var known []string
	for _, t := range r.LookedUp() {
		c, err := o.readTable(ctx, cfg, t, files[t.Name])
		if err != nil {
			return nil, err
		}
		delete(files, t.Name)
		all, known = append(all, c), append(known, t.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		return nil, fmt.Errorf("no column looks up a row of table %q; they look up %s", name, cmp.Or(strings.Join(known, ", "), "none"))
	}
	return tables.Fixed(all...), nil
}

// readTable reads all versions of a table's rows, from a file if one is given.
func (o *materializeOptions) readTable(ctx context.Context, cfg *config.Config, t *features.Table, file string) (*tables.Contents, error) {
	if read := cmp.Or(file, t.File); read != "" && isFile(read, o.output) {
		return nil, fmt.Errorf("%s, the file of table %s, is the --output", o.output, t.Name)
	}
	keep := tables.History
	if o.as == "served" {
		keep = tables.AsReceived
	}
	if file != "" {
		return tables.ReadFile(ctx, t, file, keep)
	}
	return readTable(ctx, cfg, t, keep, o.screen)
}

// isFile reports whether two names are of one file, or object.
func isFile(a, b string) bool {
	one, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	return a == b || err == nil && otherErr == nil && os.SameFile(one, other)
}

// readTable reads a table, from where its definition says.
func readTable(ctx context.Context, cfg *config.Config, t *features.Table, keep tables.Keep, screen io.Writer) (*tables.Contents, error) {
	if t.File != "" {
		return tables.ReadFile(ctx, t, t.File, keep)
	}
	log, done, err := connect.Log(cfg)
	if err != nil {
		return nil, err
	}
	defer done()
	c, bad, err := follow.Read(ctx, log, t, keep)
	if bad != nil {
		fmt.Fprintf(screen, "table %s lacks rows, such as %v\n", t.Name, bad)
	}
	return c, err
}
