package server

import "testing"

func TestPortsAreGivenOnce(t *testing.T) {
	const some = 2_000 // of 22,768: by chance about eighty would be duplicates
	seen := make(map[int]bool, some)
	for range some {
		port, err := FreePort(EphemeralPorts)
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] {
			t.Fatalf("port %d was given twice", port)
		}
		seen[port] = true
	}
}
