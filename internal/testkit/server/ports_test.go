package server

import (
	"fmt"
	"net"
	"testing"
)

// Each port, and each one kept with it, is given once, and servers can use them.
func TestPortsAreGivenOnce(t *testing.T) {
	const some, distance = 200, 10_000 // 400 of 22,768: by chance there would be some three duplicates
	seen := make(map[int]bool, some)
	for range some {
		port, err := FreePort(distance)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []int{port, port + distance} {
			if seen[p] {
				t.Fatalf("port %d was given out twice", p)
			}
			seen[p] = true
			used, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
			if err != nil {
				t.Fatal(err)
			}
			_ = used.Close()
		}
	}
}

// A port that a server uses, or another process keeps, is not given.
func TestPortsInUseAreNotGiven(t *testing.T) {
	used, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	kept, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if keep(used.Addr().(*net.TCPAddr).Port) {
		t.Error("the port of a running server was given out")
	}
	if keep(kept.LocalAddr().(*net.UDPAddr).Port) {
		t.Error("a port that another process has reserved was given out")
	}
}
