package query

import (
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/window"
)

// maxPoints bounds the points of a timeline.
const maxPoints = 60

// Point is one point of a timeline: the answer of Feature at the moment At, in milliseconds.
type Point struct {
	Feature *features.Feature
	At      int64
}

// HasTimeline reports whether a feature's window can be split into stretches with a number each: it begins by the
// clock, and its state is in tiles or a log.
func HasTimeline(f *features.Feature) bool {
	if len(f.Parts()) > 0 || f.InHand != nil || f.Per != "" || f.Membership() == aggregate.MembersRequired {
		return false
	}
	_, byClock := f.Window.Type.(window.Clocked)
	spec := f.Spec
	return byClock && !f.Window.ByEvents() && (f.Window.Tiled() || f.Window.Exact) &&
		f.Shape() == aggregate.Scalar && spec.ResultOf(f.Call.Type).Numeric()
}

// Timeline splits the window of a feature that has a timeline, at a moment in milliseconds, into stretches of equal
// width, in order of time. Each has a feature of its own over the state of the whole window. A narrower stretch at the
// window's beginning is left out.
func Timeline(f *features.Feature, at int64) []Point {
	tile, width, first, last := int64(1), f.Window.Tile, int64(0), int64(0)
	if f.Window.Exact {
		first, last = f.Window.Edges(at)
	} else {
		tile = f.Series[0].Tile
		width = time.Duration(tile) * time.Millisecond
		first, last = f.Window.Tiles(f.Series[0], at-f.Window.Delay.Milliseconds())
	}
	each := tilesOfPoint(tile, last-first+1)
	narrow := *f
	narrow.Window = window.Window{
		Type: window.Rolling{Size: time.Duration(each*tile) * time.Millisecond}, Tile: width, Exact: f.Window.Exact,
		Delay: f.Window.Delay,
	}
	points := make([]Point, (last-first+1)/each)
	for i := range points {
		end := last - int64(len(points)-1-i)*each
		points[i] = Point{&narrow, min((end+1)*tile-1+f.Window.Delay.Milliseconds(), at)}
	}
	return points
}

// tilesOfPoint returns how many of the tiles a point takes: as few as possible, or some more if that makes a customary
// width.
func tilesOfPoint(tile, tiles int64) int64 {
	least := (tiles + maxPoints - 1) / maxPoints
	for _, nice := range window.NiceTiles {
		if n := nice.Milliseconds() / tile; n >= least && n <= min(10*least, tiles) && nice.Milliseconds()%tile == 0 {
			return n
		}
	}
	return least
}
