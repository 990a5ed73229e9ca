package state

// LongKeys are the longest keys that a store has found, longest first.
type LongKeys struct {
	Keys   []LongKey
	Hashed bool // entities are named by their hashes
	Looked int  // how many keys it has looked at
	All    bool // those were all
}

// KeyCount is the number of keys with the state of entities, by group of series.
type KeyCount struct {
	Groups map[string]int64
	// Keys is the number of all keys of the servers, of any kind, and Looked the number of keys that were looked at. If Looked
	// is less, the groups' numbers are estimates.
	Keys, Looked int64
	Embeds       bool // entities of some groups may be in the keys of others
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
