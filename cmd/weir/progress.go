package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/weir-stream/weir/materialize"
)

const (
	// barEvery and lineEvery are how often progress is shown: a bar that moves
	// on a terminal, and lines elsewhere.
	barEvery  = 200 * time.Millisecond
	lineEvery = 10 * time.Second
	barWidth  = 30
	// lookEvery is how many events pass between two looks at the clock.
	lookEvery = 256
)

// progress shows how much of a file has been read.
type progress struct {
	in     io.Reader
	read   int64
	size   int64 // 0 where it is not known
	screen io.Writer
	bar    bool
	clock  func() time.Time
	began  time.Time
	shown  time.Time
	every  time.Duration
	calls  int
}

// newProgress counts what is read from it out of the file.
func newProgress(screen io.Writer, file *os.File, clock func() time.Time) *progress {
	p := &progress{in: file, screen: screen, bar: isTerminal(screen), clock: clock, every: lineEvery}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		p.size = info.Size()
	}
	if p.bar {
		p.every = barEvery
	}
	p.began = clock()
	p.shown = p.began
	return p
}

func (p *progress) Read(b []byte) (int, error) {
	n, err := p.in.Read(b)
	p.read += int64(n)
	return n, err
}

// show shows how far things are, if it is time.
func (p *progress) show(s materialize.Summary) {
	if p.calls++; p.calls%lookEvery != 0 {
		return
	}
	now := p.clock()
	if now.Sub(p.shown) < p.every {
		return
	}
	p.shown = now
	line := fmt.Sprintf("%d events, %.0f/s", s.Events, perSecond(s.Events, now.Sub(p.began)))
	if p.size > 0 {
		share := float64(p.read) / float64(p.size)
		line = fmt.Sprintf("%3.0f%%  %s", 100*share, line)
		if p.bar {
			done := int(share * barWidth)
			line = "[" + strings.Repeat("=", done) + strings.Repeat(" ", barWidth-done) + "] " + line
		}
	}
	if p.bar {
		fmt.Fprintf(p.screen, "\r%s\x1b[K", line)
		return
	}
	fmt.Fprintln(p.screen, line)
}

// end says what was done in the end.
func (p *progress) end(s materialize.Summary, err error) {
	if p.bar {
		fmt.Fprint(p.screen, "\r\x1b[K")
	}
	if err != nil {
		return
	}
	took := p.clock().Sub(p.began)
	line := fmt.Sprintf("%s in %s, %.0f/s; %s reached a cap", number(s.Events, "event"), took.Round(100*time.Millisecond),
		perSecond(s.Events, took), number(s.Capped, "value"))
	if s.Uncertain > 0 {
		line += fmt.Sprintf("; %s of late rows may be greater, as the columns *_uncertain say", number(s.Uncertain, "value"))
	}
	if s.Passed > 0 {
		line += fmt.Sprintf("; %s not of the stream", number(s.Passed, "event"))
	}
	fmt.Fprintln(p.screen, line)
}

func perSecond(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}
