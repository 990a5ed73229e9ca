// Package materialize makes training sets. It replays history through the compiled definitions, the
// functions and the merge code that answer questions in production, and writes for each row the
// features as of its moment. The rows come from a file that names entities and moments, the spine,
// or they are the events of a stream.
//
// Events of several files, and the rows, are first sorted by event time, or as served by
// the time at which they arrived (package extsort).
package materialize
