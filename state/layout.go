package state

import "fmt"

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
	DedupSet                  // hashes of event IDs, by the times of their records
	MomentTiles               // number, mean and spread of values for each tile; see Moments
	Extremes                  // one value of each tile, chosen among those met
	Groups                    // Tiles, Members, Sketches, MomentTiles or Extremes for each key
)

// layout is a row of the table of layouts. The row in state/packed says how it is packed.
type layout struct {
	name  string // for programs
	title string // for people
	// grows says that its size grows with the values or events it meets; such series share the
	// bytes of their key with those of the same pool. The others take a fixed number of bytes for
	// each tile.
	grows bool
	pool  string
	exact bool // windows have exact edges; a tile is a millisecond
	// forgets says that it drops values above the series' Max without saying so.
	forgets bool
	// associative says that merging partial states in the order of their events gives exactly the
	// state of all events, to the last bit.
	associative bool
	// chosen says that a definition chooses it by its function or method, so that no log takes its
	// place.
	chosen bool
	// maxOfTile says that the max of a feature bounds the values of a tile, as Series.Values.
	maxOfTile bool
	// raisable says that definitions may raise its cap without making another series of it: what a
	// lower cap has dropped is missing under a higher one.
	raisable bool
	// rated says that it errs at a rate, Series.Rate.
	rated bool
	// secret says that reading it takes the store's secret, with which its hashes are made.
	secret bool
	// limit says in words what the series' Max is, as a format of it.
	limit string
	// cost estimates the bytes in Redis of an entity met once, and of one met in each of that many
	// tiles. A key of Groups takes those of its measure's layout and key more.
	cost func(s *Series, tiles int64) (once, full int64)
	key  int64
}

var layouts = [...]layout{
	Tiles:       {name: "tiles", title: "tiles", associative: true, cost: eachTile(5, 5)},
	MomentTiles: {name: "moments", title: "moments", cost: eachTile(18, 18)},
	Extremes:    {name: "extremes", title: "extremes", associative: true, cost: eachTile(14, 14)},
	Members:     {name: "members", title: "members", grows: true, maxOfTile: true, raisable: true, cost: eachTile(14, 14)},
	Sketches:    {name: "sketches", title: "sketches", grows: true, chosen: true, cost: eachTile(6, 12288)},
	Filters:     {name: "filters", title: "filters", grows: true, rated: true, secret: true, limit: "%d a tile", cost: filterCost},
	LastSeen: {
		name: "last_seen", title: "last seen", exact: true, forgets: true, associative: true, chosen: true,
		raisable: true, limit: "newest %d", cost: eachOfMax(16),
	},
	// Logs have a pool of their own, because many features have their columns in them.
	Logs: {
		name: "log", title: "log", grows: true, pool: "logs", exact: true, raisable: true, limit: "newest %d", cost: eachOfMax(25),
	},
	DedupSet: {name: "dedup_set", title: "dedup set", limit: "newest %d", cost: eachOfMax(10)},
	Groups:   {name: "groups", title: "tiles by key", grows: true, limit: "first %d", key: 14},
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

// Pool names the layouts whose growing series share bytes with each other.
func (l Layout) Pool() string { return layouts[l].pool }

// Exact says whether windows have exact edges: a tile is a millisecond.
func (l Layout) Exact() bool { return layouts[l].exact }

// Forgets says whether values above the series' Max are dropped without a trace.
func (l Layout) Forgets() bool { return layouts[l].forgets }

// Chosen says whether a definition chooses the layout by its function or method, so that no log takes
// its place.
func (l Layout) Chosen() bool { return layouts[l].chosen }

// MaxOfTile says whether the max of a feature bounds the values of a tile, as Series.Values.
func (l Layout) MaxOfTile() bool { return layouts[l].maxOfTile }

// Raisable says whether definitions may raise the layout's cap without making another series of it.
func (l Layout) Raisable() bool { return layouts[l].raisable }

// Rated says whether the layout errs at a rate, Series.Rate.
func (l Layout) Rated() bool { return layouts[l].rated }

// NeedsSecret says whether reading the layout takes the store's secret.
func (l Layout) NeedsSecret() bool { return layouts[l].secret }

// Limit says in words what the Max of the series is; it is empty without one.
func (s *Series) Limit() string {
	if s.Max == 0 {
		return ""
	}
	return fmt.Sprintf(layouts[s.Layout()].limit, s.Max)
}

// Cost estimates the bytes of Redis memory that a series takes of an entity met once, and of one
// met in each of that many tiles, with each of its keys.
func (s *Series) Cost(tiles int64) (once, full int64) {
	once, full = layouts[s.Measure.Layout()].cost(s, tiles)
	if key := layouts[s.Layout()].key; key > 0 {
		return once + key, max(1, int64(s.Max)) * (full + key)
	}
	return once, full
}

// Associative says whether merging partial states in the order of their events gives exactly the
// state of all events, to the last bit.
func (l Layout) Associative() bool { return layouts[l].associative }
