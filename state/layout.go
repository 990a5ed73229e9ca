package state

// Layout is how a series is laid out in the store.
type Layout uint8

// The layouts.
const (
	Tiles       Layout = iota // a number for each tile
	Members                   // values, each with the tiles in which it was met
	Sketches                  // a HyperLogLog for each tile
	LastSeen                  // values, each with the time it was last met
	Logs                      // the events themselves, for exact windows; see Log
	Filters                   // for each tile hashes of values, or Bloom filters of them
	DedupSet                  // hashes of the events' own identities, by the time of their records
	MomentTiles               // number, mean and spread of values for each tile; see Moments
	Extremes                  // one value of each tile, chosen among those met
	Groups                    // Tiles, Members, Sketches, MomentTiles or Extremes for each key
)

// layout is a row of the table of the layouts. What is packed of one says its row in
// state/packed.
type layout struct {
	name  string // for programs
	title string // for people
	// grows says that it grows with the values or events that it meets: such series
	// share the bytes of their key. The others take a number for each tile.
	grows bool
	exact bool // its windows have exact edges: its tile is a millisecond
	// forgets says that it drops what is over the series' Max, and does not say so.
	forgets bool
	// associative says that states of some of the events each, merged in the order of those, are the
	// state of all to the last bit.
	associative bool
	// cost estimates the bytes in Redis of an entity met once, and of one met in each
	// of so many tiles; of Groups, those of one key.
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

// eachTile is the cost of so many bytes for an event alone in a tile and for a full
// tile.
func eachTile(once, full int64) func(*Series, int64) (int64, int64) {
	return func(_ *Series, tiles int64) (int64, int64) { return once, tiles * full }
}

// eachOfMax is the cost of so many bytes for each value or event, up to the series' Max.
func eachOfMax(each int64) func(*Series, int64) (int64, int64) {
	return func(s *Series, _ int64) (int64, int64) { return each, int64(s.Max) * each }
}

// filterCost is that of filters which have as many values as the series expects.
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

// Grows says whether what is kept grows with the values or events that it meets, and
// not with the tiles alone.
func (l Layout) Grows() bool { return layouts[l].grows }

// Exact says whether windows have exact edges: a tile is a millisecond.
func (l Layout) Exact() bool { return layouts[l].exact }

// Forgets says whether what is over the series' Max is dropped unseen.
func (l Layout) Forgets() bool { return layouts[l].forgets }

// Cost estimates what the measure of a series takes, in bytes of Redis' memory, of an
// entity met once, and of one met in each of so many tiles; where the series is kept
// by keys, of one key.
func (s *Series) Cost(tiles int64) (once, full int64) {
	return layouts[s.Measure.Layout()].cost(s, tiles)
}

// Associative says whether states of some of the events each, merged in the order of those,
// are the state of all to the last bit.
func (l Layout) Associative() bool { return layouts[l].associative }
