package state

// LongKeys are the longest keys that a store has found, longest first.
type LongKeys struct {
	Keys   []LongKey
	Hashed bool // entities are named by their hashes
	Looked int  // how many keys it has looked at
	All    bool // those were all
}

// LongKey is a key of a store with the state of an entity in a group of series.
type LongKey struct {
	Key    string // its whole name
	Group  string
	Entity string // its text, see AppendEntity, or its hash
	Bytes  int64  // the length of the state
	Shard  int
	Server string // address of the server that holds it; empty if there is only one
}
