package server

import (
	"errors"
	"testing"
)

func TestChooseTakesTheFirstAvailable(t *testing.T) {
	has := func(s Origin) Offer { return Offer{s, func() error { return nil }} }
	lacks := func(s Origin) Offer { return Offer{s, func() error { return errors.New("install " + string(s)) }} }
	for _, c := range []struct {
		forced string
		offers []Offer
		want   Origin
		err    string
	}{
		{"", []Offer{has(Given), has(Docker), has(Local)}, Given, ""},
		{"", []Offer{lacks(Given), lacks(Docker), has(Local)}, Local, ""},
		{"docker", []Offer{has(Given), has(Docker), has(Local)}, Docker, ""},
		{"local", []Offer{has(Given), lacks(Local)}, "", "no Kafka for this test; local: install local"},
		{"", []Offer{lacks(Given), lacks(Docker), lacks(Local)}, "",
			"no Kafka for this test; given: install given; docker: install docker; local: install local"},
		{"given", []Offer{has(Docker), has(Local)}, "",
			"no Kafka: a test that breaks its server cannot use one from WEIR_TEST_SOURCE=given"},
		{"podman", []Offer{has(Local)}, "", "WEIR_TEST_SOURCE=podman: want one of [given docker local]"},
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
