// Command faults puts Weir through random trials on real Kafka and Redis servers. In each round a
// seed draws the servers, definitions, events and faults. Processes of the real binary handle the
// events while the faults happen, and in the end every feature of every entity is compared with a
// plain loop over the log. docs/faults.md says what is drawn and how to read the output.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weir-stream/weir/internal/testkit/blackbox"
)

func main() {
	minutes := flag.Float64("minutes", 10, "how long to begin rounds; the last one runs to its end")
	seed := flag.Uint64("seed", 0, "play the round of this seed, and no other")
	from := flag.Uint64("from", 0, "seed of the first round; those after it count on from there; 0 draws one")
	only := flag.String("topology", "", "play rounds of one topology: "+strings.Join(topologies, ", "))
	without := flag.String("without", "", "faults to leave out, with commas between them: "+strings.Join(faultNames(), ", "))
	with := flag.String("with", "", "play only rounds that have these faults, with commas between them")
	rounds := flag.Int("rounds", 0, "how many rounds to play, however long that takes; 0 goes by -minutes")
	parallel := flag.Int("parallel", 1, "how many rounds to play at a time, each on servers of its own")
	race := flag.Bool("race", false, "build the binary with the race detector")
	keep := flag.Bool("keep", false, "keep the folders of rounds that failed, with the logs of processes and servers")
	flag.Parse()
	d := drawing{topology: *only, with: strings.FieldsFunc(*with, isComma), without: strings.FieldsFunc(*without, isComma)}
	err := d.check()
	if err == nil && *parallel < 1 {
		err = fmt.Errorf("-parallel is %d: play at least one round at a time", *parallel)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(2)
	}
	b := bounds{length: time.Duration(*minutes * float64(time.Minute)), rounds: *rounds, seed: *seed, from: *from}
	if err := run(b, d, *parallel, *race, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

// bounds define which rounds are played, and how many.
type bounds struct {
	length     time.Duration // how long rounds begin, if rounds is 0
	rounds     int
	seed, from uint64 // 0 for none; see the flags
}

// over reports whether no further round begins.
func (b *bounds) over(begun int, took time.Duration) bool {
	switch {
	case begun == 0:
		return false
	case b.seed != 0:
		return true
	case b.rounds > 0:
		return begun >= b.rounds
	}
	return took >= b.length
}

// seeds returns a source of the rounds' seeds.
func (b *bounds) seeds() func() uint64 {
	if b.seed != 0 {
		return func() uint64 { return b.seed }
	}
	next := b.from
	if next == 0 {
		next = uint64(rand.Uint32()) + 1
	}
	return func() uint64 { next++; return next - 1 }
}

func isComma(r rune) bool { return r == ',' }

// run plays rounds, several concurrently, until there are enough, or only the round of one seed.
func run(b bounds, d drawing, parallel int, race, keep bool) error {
	if err := os.Setenv("WEIR_TEST_SOURCE", "local"); err != nil { // faults change files and processes
		return err
	}
	dir, err := os.MkdirTemp("", "weir-faults-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary, err := blackbox.Build(dir, race)
	if err != nil {
		return err
	}
	asked, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(asked, stop) // the first signal lets the rounds finish, the second stops them
	s := &session{bounds: b, drawing: d, seeds: b.seeds(), asked: asked, began: time.Now(), out: json.NewEncoder(os.Stdout)}
	var playing sync.WaitGroup
	for range parallel {
		t := newTrials(binary, keep)
		playing.Go(func() {
			defer t.close(false)
			for p := s.next(); p != nil; p = s.next() {
				s.report(t.play(p))
			}
		})
	}
	playing.Wait()
	if s.all.rounds > 0 {
		fmt.Fprint(os.Stderr, s.all.text(time.Since(s.began)))
	}
	if s.err == nil && s.all.failed > 0 {
		return fmt.Errorf("%d of %d rounds failed", s.all.failed, s.all.rounds)
	}
	return s.err
}
