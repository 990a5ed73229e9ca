// Package protocol makes the steps of package progress in the records of a store: it reads, decides, and has the store compare and
// change. It is the same for every engine; what an engine must offer for it is small.
package protocol

import (
	"context"

	"github.com/weir-stream/weir/state/progress"
)

// A record is that of a shard, from 0 on, or one of the registers of the namespace.
const (
	Plans   = -1 - iota // the plans, fills and archives that there ever were
	Used                // the plans in use
	Busiest             // what processors publish about their busiest entities
)

// Engine keeps records, in any way that changes one record in one step. It is safe for concurrent use.
type Engine interface {
	// Shards returns the number of shards.
	Shards() int
	// Read reads records. The answers are in the order of the records, each with its own error: a state.ErrUnavailable for one that
	// cannot be reached while others can.
	Read(ctx context.Context, q Query) []Found
	// Names returns the names of the fields of a register.
	Names(ctx context.Context, register int) ([]string, error)
	// Change makes changes of records, each in one step or not at all, and sets what came of it.
	Change(ctx context.Context, changes []Change)
	// Begin empties the state of those of some shards that have not begun, and records that they have.
	Begin(ctx context.Context, shards []int) error
	// Servers asks the servers of all shards about themselves; nil for one that does not answer or does not say it.
	Servers(ctx context.Context) []*Server
	// Down returns why no shard can be reached; nil if some can, as far as is known. It makes no request.
	Down(ctx context.Context) error
	// Name returns the name of a record, for messages.
	Name(record int) string
}

// Purpose is what records are read for.
type Purpose int

// The purposes.
const (
	ToAnswer Purpose = iota // a question: the time is short
	ToReport                // how far records are applied
	ToChange                // a change of the record: it is refused if nothing may change the record now
)

// Query asks for records.
type Query struct {
	Records []int
	Names   []string // of fields; nil for all
	For     Purpose
	Runs    []string // of the servers that shards must be in to be changed, by shard, "" for any; nil for any
}

// Run returns the run of the server that a record must be in, "" for any.
func (q *Query) Run(record int) string { return runOf(q.Runs, record) }

func runOf(runs []string, record int) string {
	if runs == nil || record < 0 {
		return ""
	}
	return runs[record]
}

// Found is a record that was read.
type Found struct {
	Fields map[string]string // those that it has
	// Clock is the time of the record's server, in ms, if it was read to change it.
	Clock int64
	Err   error
}

// Change is a change of a record.
type Change struct {
	Record int
	Run    string // as in Query.Runs
	Last   string // name of the last change when the record was read
	*progress.Change

	// Made is false if the change was refused, because the record has changed since. Err says that it is unknown whether it was made.
	Made bool
	Err  error
}

// Server is what a server says about itself.
type Server struct {
	Run     string // changes when it is restarted
	Evicted int64  // keys since then
	Clock   int64  // in ms
}
