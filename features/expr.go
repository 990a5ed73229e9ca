package features

// Expr is a compiled expression over the fields of a stream.
type Expr struct {
	Source string // in canonical form
}
