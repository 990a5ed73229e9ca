// Package server runs the servers of tests: it finds out where they can be had, and starts,
// ends and signals their processes and containers.
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

// Source is where servers come from.
type Source string

// The sources, in the order in which they are tried.
const (
	Given  Source = "given"  // addresses in the environment
	Docker Source = "docker" // containers
	Local  Source = "local"  // processes of this machine
)

// Offer is one source of a kind of server, with the reason why it cannot be
// had on this machine.
type Offer struct {
	from Source
	lack func() error
}

// choose returns the first source that can be had, of those that
// WEIR_TEST_SOURCE allows, or an error that says what each lacks.
func choose(kind, forced string, offers ...Offer) (Source, error) {
	all := []Source{Given, Docker, Local}
	if forced != "" && !slices.Contains(all, Source(forced)) {
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

// MustChoose is choose by the environment; it skips the test when there is no
// source, or fails it under WEIR_TEST_REQUIRE=1.
func MustChoose(t testing.TB, kind string, offers ...Offer) Source {
	t.Helper()
	from, err := choose(kind, os.Getenv("WEIR_TEST_SOURCE"), offers...)
	if err != nil {
		Skip(t, err)
	}
	return from
}

// Skip skips the test for what it lacks, or fails it under WEIR_TEST_REQUIRE=1.
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

// dockerAnswers asks once a binary: a daemon that does not answer costs
// seconds each time.
var dockerAnswers = sync.OnceValue(func() (err error) {
	// testcontainers panics when it finds no daemon's address at all.
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

// LackCommand says how to get a program that is not on PATH.
func LackCommand(name, install string) error {
	if _, err := exec.LookPath(name); err != nil {
		return fmt.Errorf("%s is not on PATH: install %s", name, install)
	}
	return nil
}

// FromMachine offers processes of this machine; lack says what it lacks for that.
func FromMachine(lack func() error) Offer { return Offer{Local, lack} }
