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
	"slices"
	"strings"
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
	race := flag.Bool("race", false, "build the binary with the race detector")
	keep := flag.Bool("keep", false, "keep the folders of rounds that failed, with the logs of processes and servers")
	flag.Parse()
	if err := check(*only, *without); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(2)
	}
	if err := run(time.Duration(*minutes*float64(time.Minute)), *seed, *from, *only, *without, *race, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

// check refuses unknown names.
func check(topology, without string) error {
	if topology != "" && !slices.Contains(topologies, topology) {
		return fmt.Errorf("no topology %q; there are %s", topology, strings.Join(topologies, ", "))
	}
	for _, name := range strings.FieldsFunc(without, isComma) {
		if !slices.Contains(faultNames(), name) {
			return fmt.Errorf("no fault %q; there are %s", name, strings.Join(faultNames(), ", "))
		}
	}
	return nil
}

func isComma(r rune) bool { return r == ',' }

// run plays rounds until the time is over, or only the round of one seed.
func run(length time.Duration, seed, from uint64, only, without string, race, keep bool) error {
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
	context.AfterFunc(asked, stop) // the first signal lets the round finish, the second stops it
	t := newTrials(binary, keep)
	defer t.close(false)
	next := func() uint64 { s := from; from++; return s }
	switch {
	case seed != 0:
		next = func() uint64 { return seed }
	case from == 0:
		from = uint64(rand.Uint32()) + 1
	}
	var all summary
	out := json.NewEncoder(os.Stdout)
	began := time.Now()
	for {
		r := t.play(draw(next(), only, strings.FieldsFunc(without, isComma)))
		if err := out.Encode(r); err != nil {
			return err
		}
		all.add(r)
		if seed != 0 || time.Since(began) >= length || asked.Err() != nil {
			break
		}
	}
	fmt.Fprint(os.Stderr, all.text(time.Since(began)))
	if all.failed > 0 {
		return fmt.Errorf("%d of %d rounds failed", all.failed, all.rounds)
	}
	return nil
}
