package redistest

import (
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/server"
)

// The test kills a test binary that uses the shared Redis, and waits until the server is gone.
func TestServersDieWithTheBinary(t *testing.T) {
	const child = "WEIR_TESTKIT_CHILD"
	if file := os.Getenv(child); file != "" {
		if err := os.WriteFile(file+".part", []byte(Shared(t).Addr()), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".part", file); err != nil {
			t.Fatal(err)
		}
		select {}
	}
	server.MustChoose(t, "Redis", server.FromMachine(lackLocal))
	file := t.TempDir() + "/addr"
	binary := exec.Command(os.Args[0], "-test.run=^TestServersDieWithTheBinary$")
	binary.Env = append(os.Environ(), child+"="+file, "WEIR_TEST_SOURCE=local")
	if err := server.Spawn(binary); err != nil {
		t.Fatal(err)
	}
	var addr []byte
	testkit.Eventually(t, server.StartTimeout, "the child's Redis", func() (bool, string) {
		var err error
		addr, err = os.ReadFile(file)
		return err == nil, "no address yet"
	})
	if err := binary.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = binary.Wait() // it was killed
	testkit.Eventually(t, time.Minute, "end of the child's Redis", func() (bool, string) {
		c, err := net.Dial("tcp", string(addr))
		if err == nil {
			_ = c.Close()
		}
		return err != nil, "it takes connections"
	})
}
