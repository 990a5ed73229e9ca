// Package materialize makes training sets: it replays history through the plan, the
// functions and the merge code that answer questions in production, and writes for each
// row the features as of its moment. Rows are those of a file that names entities and
// moments, the spine, or the events of a stream, each as of itself.
//
// Events of several files are put in the order of their times first, or of the times
// at which they came (package extsort), together with the rows.
package materialize
