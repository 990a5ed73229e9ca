package testkit

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

// source is where servers come from.
type source string

const (
	given  source = "given"
	docker source = "docker"
	local  source = "local"
)

// offer is one source of a kind of server, with the reason why it cannot be
// had on this machine.
type offer struct {
	from source
	lack func() error
}

// choose returns the first source that can be had, of those that
// WEIR_TEST_SOURCE allows, or an error that says what each lacks.
func choose(kind, forced string, offers ...offer) (source, error) {
	all := []source{given, docker, local}
	if forced != "" && !slices.Contains(all, source(forced)) {
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

// mustChoose is choose by the environment; it skips the test when there is no
// source, or fails it under WEIR_TEST_REQUIRE=1.
func mustChoose(t testing.TB, kind string, offers ...offer) source {
	t.Helper()
	from, err := choose(kind, os.Getenv("WEIR_TEST_SOURCE"), offers...)
	if err != nil {
		skip(t, err)
	}
	return from
}

// skip skips the test for what it lacks, or fails it under WEIR_TEST_REQUIRE=1.
func skip(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("WEIR_TEST_REQUIRE") == "1" {
		t.Fatalf("WEIR_TEST_REQUIRE=1: %v", err)
	}
	t.Skip(err)
}

// lackGiven offers the addresses of an environment variable.
func lackGiven(env string) offer {
	return offer{given, func() error {
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
	ctx, cancel := startContext()
	defer cancel()
	if err := provider.Health(ctx); err != nil {
		return fmt.Errorf("start a Docker daemon (%w)", err)
	}
	return nil
})

func lackDocker() offer { return offer{docker, dockerAnswers} }

// Command is the path of a program that a test runs. Where it is not on PATH the
// test is skipped and says what to install or, with WEIR_TEST_REQUIRE=1, fails.
func Command(t testing.TB, name, install string) (path string) {
	t.Helper()
	if err := lackCommand(name, install); err != nil {
		skip(t, err)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// lackCommand says how to get a program that is not on PATH.
func lackCommand(name, install string) error {
	if _, err := exec.LookPath(name); err != nil {
		return fmt.Errorf("%s is not on PATH: install %s", name, install)
	}
	return nil
}
