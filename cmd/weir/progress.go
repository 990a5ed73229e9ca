package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/weir-stream/weir/cmd/weir/say"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/materialize"
)

const (
	// barEvery and lineEvery are how often progress is shown: an updating bar on a terminal, lines
	// elsewhere.
	barEvery  = 200 * time.Millisecond
	lineEvery = 10 * time.Second
	barWidth  = 30
)

// progress shows the progress of a training set.
type progress struct {
	screen io.Writer
	bar    bool
	clock  func() time.Time
	began  time.Time
	shown  time.Time
	every  time.Duration

	reading bool      // of the phase
	phase   time.Time // when it began
}

func newProgress(screen io.Writer, clock func() time.Time) *progress {
	p := &progress{screen: screen, bar: say.IsTerminal(screen), clock: clock, every: lineEvery}
	if p.bar {
		p.every = barEvery
	}
	p.began = clock()
	p.shown, p.phase, p.reading = p.began, p.began, true
	return p
}

// show shows the progress, if it is due.
func (p *progress) show(is materialize.Progress) {
	now := p.clock()
	if is.Reading != p.reading {
		p.reading, p.phase = is.Reading, now
	}
	if now.Sub(p.shown) < p.every {
		return
	}
	p.shown = now
	line := fmt.Sprintf("reading: %s, %.0f/s", spelling.Counted(is.Events, "event"), perSecond(is.Events, now.Sub(p.phase)))
	if !is.Reading {
		line = fmt.Sprintf("making: %s, %.0f/s", spelling.Counted(is.Rows, "row"), perSecond(is.Rows, now.Sub(p.phase)))
	}
	if is.Share > 0 {
		left := time.Duration(float64(now.Sub(p.phase)) * (1 - is.Share) / is.Share)
		line = fmt.Sprintf("%3.0f%%  %s, %s left", math.Floor(100*is.Share), line, left.Round(time.Second))
		if p.bar {
			done := int(is.Share * barWidth)
			line = "[" + strings.Repeat("=", done) + strings.Repeat(" ", barWidth-done) + "] " + line
		}
	}
	if p.bar {
		fmt.Fprintf(p.screen, "\r%s\x1b[K", line)
		return
	}
	fmt.Fprintln(p.screen, line)
}

// end prints the final summary.
func (p *progress) end(s materialize.Summary, err error) {
	if p.bar {
		fmt.Fprint(p.screen, "\r\x1b[K")
	}
	if err != nil {
		return
	}
	took := p.clock().Sub(p.began)
	line := fmt.Sprintf("%s of %s in %s, %.0f/s; %s reached a cap", spelling.Counted(s.Rows, "row"), spelling.Counted(s.Events, "event"),
		took.Round(100*time.Millisecond), perSecond(s.Rows, took), spelling.Counted(s.Capped, "value"))
	for _, more := range []struct {
		n    int
		noun string
		said string
	}{
		{s.Uncertain, "value", "may be greater, since events came late"},
		{s.OutsideMaxAge, "value", "older than the past that is kept"},
		{s.Incomplete, "value", "incomplete, since the topics lack events that they need"},
		{s.Late, "event", "too late for some feature"},
		{s.Repeated, "event", "repeated, which is left out"},
		{s.Passed, "event", "of no such stream"},
		{s.NoID, "event", "without an id, and so without a row"},
	} {
		if more.n > 0 {
			line += fmt.Sprintf("; %s %s", spelling.Counted(more.n, more.noun), more.said)
		}
	}
	if s.SetAside > 0 {
		line += fmt.Sprintf("; %s set aside, the first: %v", spelling.Counted(s.SetAside, "event"), s.FirstSetAside)
	}
	if s.Spilled > 0 {
		line += fmt.Sprintf("; %.0f MiB sorted on disk", float64(s.Spilled)/(1<<20))
	}
	fmt.Fprintln(p.screen, line)
}

func perSecond(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}
