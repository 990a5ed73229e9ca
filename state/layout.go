package state

// Layout is how a series is stored.
type Layout uint8

// The layouts.
const (
	Tiles       Layout = iota // a number for each tile
	Members                   // values, each with the tiles in which it was met
	Sketches                  // a HyperLogLog for each tile
	LastSeen                  // values, each with the time it was last met
	Logs                      // the events themselves, for exact windows; see Log
	Filters                   // for each tile hashes of values, or Bloom filters of them
	DedupSet                  // hashes of event identities, by the times of their records
	MomentTiles               // number, mean and spread of values for each tile; see Moments
	Extremes                  // one value of each tile, chosen among those met
	Groups                    // Tiles, Members, Sketches, MomentTiles or Extremes for each key
)

// layout is a row of the table of layouts. The row in state/packed says how it is packed.
type layout struct {
	name  string // for programs
	title string // for people
	// grows says that its size grows with the values or events it meets; such series share the
	// bytes of their key. The others take a fixed number of bytes for each tile.
	grows bool
	exact bool // windows have exact edges; a tile is a millisecond
	// forgets says that it drops values above the series' Max without saying so.
	forgets bool
	// associative says that merging partial states in the order of their events gives exactly the
	// state of all events, to the last bit.
	associative bool
	// cost estimates the bytes in Redis of an entity met once, and of one met in each of that many
	// tiles; for Groups, those of one key.
	cost func(s *Series, tiles int64) (once, full int64)
}

var layouts = [...]layout{
	Tiles:       {name: "tiles", title: "tiles", associative: true, cost: eachTile(5, 5)},
	MomentTiles: {name: "moments", title: "moments", cost: eachTile(18, 18)},
	Extremes:    {name: "extremes", title: "extremes", associative: true, cost: eachTile(14, 14)},
	Members:     {name: "members", title: "members", grows: true, cost: eachTile(14, 14)},
	Sketches:    {name: "sketches", title: "sketches", grows: true, cost: eachTile(6, 12288)},
	Filters:     {name: "filters", title: "filters", grows: true, cost: filterCost},
	LastSeen:    {name: "last_seen", title: "last seen", exact: true, forgets: true, associative: true, cost: eachOfMax(16)},
	Logs:        {name: "log", title: "log", grows: true, exact: true, cost: eachOfMax(25)},
	DedupSet:    {name: "ids", title: "ids", cost: eachOfMax(10)},
	Groups:      {name: "groups", title: "tiles by key", grows: true}, // its keys cost what their measure's layout does
}

// eachTile makes a cost from the bytes of a tile with one event and of a full tile.
func eachTile(once, full int64) func(*Series, int64) (int64, int64) {
	return func(_ *Series, tiles int64) (int64, int64) { return once, tiles * full }
}

// eachOfMax makes a cost of that many bytes for each value or event, up to the series' Max.
func eachOfMax(each int64) func(*Series, int64) (int64, int64) {
	return func(s *Series, _ int64) (int64, int64) { return each, int64(s.Max) * each }
}

// filterCost is the cost of filters that hold as many values as the series expects.
func filterCost(s *Series, tiles int64) (once, full int64) {
	const hash = 8
	size, _ := BloomSize(s.Max, s.Rate/2) // the other half is for what comes after
	if size == 0 {
		size = s.Max * hash
	}
	return 12, tiles * int64(size)
}

// Name is the layout's name, for programs.
func (l Layout) Name() string { return layouts[l].name }

// String is the layout's name, for people.
func (l Layout) String() string { return layouts[l].title }

// Grows says whether the size grows with the values or events that it meets, and not only with the
// tiles.
func (l Layout) Grows() bool { return layouts[l].grows }

// Exact says whether windows have exact edges: a tile is a millisecond.
func (l Layout) Exact() bool { return layouts[l].exact }

// Forgets says whether values above the series' Max are dropped without a trace.
func (l Layout) Forgets() bool { return layouts[l].forgets }

// Cost estimates the bytes of Redis memory that a series takes of an entity met once, and of one
// met in each of that many tiles; for a series kept by keys, of one key.
func (s *Series) Cost(tiles int64) (once, full int64) {
	return layouts[s.Measure.Layout()].cost(s, tiles)
}

// Associative says whether merging partial states in the order of their events gives exactly the
// state of all events, to the last bit.
func (l Layout) Associative() bool { return layouts[l].associative }
