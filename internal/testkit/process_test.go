package testkit

import (
	"net"
	"os"
	"os/exec"
	"testing"
	"time"
)

// It kills a test binary that has the shared Redis,
// and waits for the server to be gone.
func TestServersDieWithTheBinary(t *testing.T) {
	const child = "WEIR_TESTKIT_CHILD"
	if file := os.Getenv(child); file != "" {
		if err := os.WriteFile(file+".part", []byte(Redis(t).Addr()), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".part", file); err != nil {
			t.Fatal(err)
		}
		select {}
	}
	mustChoose(t, "Redis", offer{local, lackLocalRedis})
	file := t.TempDir() + "/addr"
	binary := exec.Command(os.Args[0], "-test.run=^TestServersDieWithTheBinary$")
	binary.Env = append(os.Environ(), child+"="+file, "WEIR_TEST_SOURCE=local")
	if err := spawn(binary); err != nil {
		t.Fatal(err)
	}
	var addr []byte
	Eventually(t, startTimeout, "the child's Redis", func() (bool, string) {
		var err error
		addr, err = os.ReadFile(file)
		return err == nil, "no address yet"
	})
	if err := binary.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = binary.Wait() // killed
	Eventually(t, 10*time.Second, "end of the child's Redis", func() (bool, string) {
		c, err := net.Dial("tcp", string(addr))
		if err == nil {
			_ = c.Close()
		}
		return err != nil, "it takes connections"
	})
}
