package testkit

import (
	"errors"
	"testing"
)

func TestChooseTakesTheFirstThatCanBeHad(t *testing.T) {
	has := func(s source) offer { return offer{s, func() error { return nil }} }
	lacks := func(s source) offer { return offer{s, func() error { return errors.New("install " + string(s)) }} }
	for _, c := range []struct {
		forced string
		offers []offer
		want   source
		err    string
	}{
		{"", []offer{has(given), has(docker), has(local)}, given, ""},
		{"", []offer{lacks(given), lacks(docker), has(local)}, local, ""},
		{"docker", []offer{has(given), has(docker), has(local)}, docker, ""},
		{"local", []offer{has(given), lacks(local)}, "", "no Kafka for this test; local: install local"},
		{"", []offer{lacks(given), lacks(docker), lacks(local)}, "",
			"no Kafka for this test; given: install given; docker: install docker; local: install local"},
		{"given", []offer{has(docker), has(local)}, "",
			"no Kafka: a test that breaks its server cannot use one from WEIR_TEST_SOURCE=given"},
		{"podman", []offer{has(local)}, "", "WEIR_TEST_SOURCE=podman: want one of [given docker local]"},
	} {
		got, err := choose("Kafka", c.forced, c.offers...)
		message := ""
		if err != nil {
			message = err.Error()
		}
		if got != c.want || message != c.err {
			t.Errorf("WEIR_TEST_SOURCE=%q: %q, %q; want %q, %q", c.forced, got, message, c.want, c.err)
		}
	}
}
