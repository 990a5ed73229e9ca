// Package server runs the servers of tests: it chooses where they come from, and starts, stops and
// signals their processes and containers.
package server

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/testcontainers/testcontainers-go"
)

// Origin is where servers come from.
type Origin string

// The origins, in the order in which they are tried.
const (
	Given  Origin = "given"  // addresses in the environment
	Docker Origin = "docker" // containers
	Local  Origin = "local"  // processes of this machine
)

// Offer is one origin of a kind of server, with the reason if it is not available on this machine.
type Offer struct {
	from Origin
	lack func() error
}

// choose returns the first available origin that WEIR_TEST_SOURCE allows, or an error that says
// what each lacks.
func choose(kind, forced string, offers ...Offer) (Origin, error) {
	all := []Origin{Given, Docker, Local}
	if forced != "" && !slices.Contains(all, Origin(forced)) {
		return "", fmt.Errorf("WEIR_TEST_SOURCE=%s: want one of %v", forced, all)
	}
	var lacks []string
	for _, o := range offers {
		if forced != "" && forced != string(o.from) {
			continue
		}
		err := o.lack()
		if err == nil {
			return o.from, nil
		}
		lacks = append(lacks, fmt.Sprintf("%s: %v", o.from, err))
	}
	if len(lacks) == 0 {
		return "", fmt.Errorf("no %s: a test that breaks its server cannot use one from WEIR_TEST_SOURCE=%s", kind, forced)
	}
	return "", fmt.Errorf("no %s for this test; %s", kind, strings.Join(lacks, "; "))
}

// MustChoose is choose with the environment's WEIR_TEST_SOURCE. Without an origin it skips the
// test, or fails it under WEIR_TEST_REQUIRE=1.
func MustChoose(t testing.TB, kind string, offers ...Offer) Origin {
	t.Helper()
	from, err := choose(kind, os.Getenv("WEIR_TEST_SOURCE"), offers...)
	if err != nil {
		Skip(t, err)
	}
	return from
}

// Skip skips the test because of err, or fails it under WEIR_TEST_REQUIRE=1.
func Skip(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("WEIR_TEST_REQUIRE") == "1" {
		t.Fatalf("WEIR_TEST_REQUIRE=1: %v", err)
	}
	t.Skip(err)
}

// FromEnvironment offers the addresses of an environment variable.
func FromEnvironment(env string) Offer {
	return Offer{Given, func() error {
		if os.Getenv(env) == "" {
			return fmt.Errorf("set %s=host:port", env)
		}
		return nil
	}}
}

// dockerAnswers checks once for each binary: a daemon that does not answer takes seconds each time.
var dockerAnswers = sync.OnceValue(func() (err error) {
	// testcontainers panics if it finds no address of a daemon.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("start a Docker daemon (%v)", r)
		}
	}()
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return fmt.Errorf("start a Docker daemon (%w)", err)
	}
	defer provider.Close()
	ctx, cancel := StartContext()
	defer cancel()
	if err := provider.Health(ctx); err != nil {
		return fmt.Errorf("start a Docker daemon (%w)", err)
	}
	return nil
})

// FromDocker offers containers.
func FromDocker() Offer { return Offer{Docker, dockerAnswers} }

// LackCommand returns how to get a program that is not on PATH.
func LackCommand(name, install string) error {
	if _, err := exec.LookPath(name); err != nil {
		return fmt.Errorf("%s is not on PATH: install %s", name, install)
	}
	return nil
}

// FromMachine offers processes of this machine; lack returns what it lacks for them.
func FromMachine(lack func() error) Offer { return Offer{Local, lack} }
