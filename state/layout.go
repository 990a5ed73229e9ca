package state

import "fmt"

// Layout is how a series is stored.
type Layout uint8

// The layouts.
const (
	Tiles       Layout = iota // a number for each tile
	Members                   // values, each with the tiles in which it occurred
	Sketches                  // a HyperLogLog for each tile
	LastSeen                  // values, each with the time of its last event
	Logs                      // the events themselves, for exact windows; see Log
	Filters                   // for each tile hashes of values, or Bloom filters of them
	DedupSet                  // hashes of event IDs, by the times of their records
	MomentTiles               // number, mean and spread of values for each tile; see Moments
	Extremes                  // one value of each tile: the first, last, least or greatest
	Groups                    // Tiles, Members, Sketches, MomentTiles or Extremes for each key
)

// layout is a row of the table of layouts. The row in state/packed holds the encoding.
type layout struct {
	name  string // in machine-readable output
	title string // in messages
	// grows means that the size grows with the number of values or events. Such series share the bytes of their key
	// with others of the same pool. The others take a fixed number of bytes for each tile.
	grows bool
	pool  string
	exact bool // windows have exact edges; a tile is a millisecond
	// forgets means that values above the series' Max are dropped without a note.
	forgets bool
	// associative means that merging partial states in the order of their events gives exactly the state of all events,
	// to the last bit.
	associative bool
	// chosen means that a definition chooses the layout by its function or method, so that no log replaces it.
	chosen bool
	// maxOfTile means that the max of a feature bounds the values of a tile, as Series.Values.
	maxOfTile bool
	// raisable means that definitions may raise the cap without making another series: what a lower cap has dropped is
	// missing under a higher one.
	raisable bool
	// noteless means that state under a lower cap does not say whether it lacks something under a higher one.
	noteless bool
	// rated means that answers are wrong at a rate, Series.Rate.
	rated bool
	// secret means that reading takes the store's secret, because the hashes are keyed with it.
	secret bool
	// limit is a format that says in words what the series' Max is.
	limit string
	// cost estimates the bytes in Redis of an entity with one event, and of one with events in `tiles` tiles. A key of
	// Groups takes the bytes of its measure's layout and of the key.
	cost func(s *Series, tiles int64) (once, full int64)
	key  int64
}

var layouts = [...]layout{
	Tiles:       {name: "tiles", title: "tiles", associative: true, cost: eachTile(5, 5)},
	MomentTiles: {name: "moments", title: "moments", cost: eachTile(18, 18)},
	Extremes:    {name: "extremes", title: "extremes", associative: true, cost: eachTile(14, 14)},
	Members:     {name: "members", title: "members", grows: true, maxOfTile: true, raisable: true, secret: true, cost: eachTile(14, 14)},
	Sketches:    {name: "sketches", title: "sketches", grows: true, chosen: true, cost: eachTile(6, 12288)},
	Filters:     {name: "filters", title: "filters", grows: true, rated: true, secret: true, limit: "%d a tile", cost: filterCost},
	LastSeen: {
		name: "last_seen", title: "last seen", exact: true, forgets: true, associative: true, chosen: true,
		raisable: true, noteless: true, limit: "newest %d", cost: eachOfMax(16),
	},
	// Logs have a pool of their own, because many features have their columns in them.
	Logs: {
		name: "log", title: "log", grows: true, pool: "logs", exact: true, raisable: true, secret: true, limit: "newest %d", cost: eachOfMax(25),
	},
	DedupSet: {name: "dedup_set", title: "dedup set", limit: "newest %d", cost: eachOfMax(10)},
	Groups:   {name: "groups", title: "tiles by key", grows: true, raisable: true, noteless: true, secret: true, limit: "first %d", key: 14},
}

// eachTile returns a cost, given the bytes of a tile with one event and of a full tile.
func eachTile(once, full int64) func(*Series, int64) (int64, int64) {
	return func(_ *Series, tiles int64) (int64, int64) { return once, tiles * full }
}

// eachOfMax returns a cost of `each` bytes for each value or event, up to the series' Max.
func eachOfMax(each int64) func(*Series, int64) (int64, int64) {
	return func(s *Series, _ int64) (int64, int64) { return each, int64(s.Max) * each }
}

// filterCost returns the cost of filters that hold as many values as the series expects.
func filterCost(s *Series, tiles int64) (once, full int64) {
	const hash = 8
	size, _ := BloomSize(s.Max, s.Rate/2) // the other half is for later layers
	if size == 0 {
		size = s.Max * hash
	}
	return 12, tiles * int64(size)
}

// Name returns the layout's name for machine-readable output.
func (l Layout) Name() string { return layouts[l].name }

// String returns the layout's name for messages.
func (l Layout) String() string { return layouts[l].title }

// Grows reports whether the size grows with the number of values or events, and not only with the tiles.
func (l Layout) Grows() bool { return layouts[l].grows }

// Pool names the layouts whose growing series share bytes with each other.
func (l Layout) Pool() string { return layouts[l].pool }

// Exact reports whether windows have exact edges: a tile is a millisecond.
func (l Layout) Exact() bool { return layouts[l].exact }

// Forgets reports whether values above the series' Max are dropped without a note.
func (l Layout) Forgets() bool { return layouts[l].forgets }

// Chosen reports whether a definition chooses the layout by its function or method, so that no log replaces it.
func (l Layout) Chosen() bool { return layouts[l].chosen }

// MaxOfTile reports whether the max of a feature bounds the values of a tile, as Series.Values.
func (l Layout) MaxOfTile() bool { return layouts[l].maxOfTile }

// Raisable reports whether definitions may raise the layout's cap without making another series of it.
func (l Layout) Raisable() bool { return layouts[l].raisable }

// Noteless reports whether state under a lower cap does not say whether it lacks something under a higher one.
func (l Layout) Noteless() bool { return layouts[l].noteless }

// Rated reports whether answers are wrong at a rate, Series.Rate.
func (l Layout) Rated() bool { return layouts[l].rated }

// NeedsSecret reports whether reading the layout takes the store's secret.
func (l Layout) NeedsSecret() bool { return layouts[l].secret }

// Limit returns in words what the Max of the series is; "" if it has none.
func (s *Series) Limit() string {
	if s.Max == 0 {
		return ""
	}
	return fmt.Sprintf(layouts[s.Layout()].limit, s.Max)
}

// Cost estimates the bytes of Redis memory that a series takes of an entity with one event, and of one with events in
// `tiles` tiles with each of its keys.
func (s *Series) Cost(tiles int64) (once, full int64) {
	once, full = layouts[s.Measure.Layout()].cost(s, tiles)
	if key := layouts[s.Layout()].key; key > 0 {
		return once + key, max(1, int64(s.Max)) * (full + key)
	}
	return once, full
}

// Associative reports whether merging partial states in the order of their events gives exactly the state of all
// events, to the last bit.
func (l Layout) Associative() bool { return layouts[l].associative }
