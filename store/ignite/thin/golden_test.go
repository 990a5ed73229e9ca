package thin_test

import (
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/ignitetest"
	"github.com/weir-stream/weir/store/ignite/thin"
)

func TestMain(m *testing.M) { testkit.Main(m) }

var update = flag.Bool("update", false, "record the messages of a real node")

const golden = "testdata/messages.txt"

// client returns a client of some addresses.
func client(t *testing.T, addresses ...string) *thin.Client {
	c := thin.New(thin.Config{Addresses: addresses, Login: thin.Login{Timeout: 10 * time.Second}, Request: 10 * time.Second})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// The messages to a node, and what is read from its answers, are those that were recorded with a real one.
func TestRecordedMessages(t *testing.T) {
	var address string
	if *update {
		address = record(t, ignitetest.New(t, 1).Addresses()[0])
	} else {
		address = replay(t)
	}
	c := client(t, address)
	cache := c.Cache("weir.golden")
	check := func(what string, got any, err error, want any) {
		t.Helper()
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%s: got %v, error %v; want %v", what, got, err, want)
		}
	}
	ctx := t.Context()
	_, err := cache.GetAll(ctx, []thin.UUID{{Low: 5}})
	if refused, ok := errors.AsType[*thin.Error](err); !ok || refused.Status != 1000 || !strings.Contains(err.Error(), "does not exist") {
		t.Fatalf("of a cache that does not exist: error %v", err)
	}
	check("create", nil, cache.Create(ctx, 1, ""), nil)
	owner := cache.Owner(ctx, thin.UUID{Low: 5})
	if (owner == thin.UUID{}) {
		t.Fatal("the node that has a partition is unknown")
	}
	tx, err := cache.Begin(ctx, thin.UUID{Low: 5})
	check("begin", nil, err, nil)
	held, err := tx.GetAll(ctx, []thin.UUID{{Low: 5}, {High: 1 << 63, Low: 6}})
	check("in a transaction", held, err, [][]byte{nil, nil})
	check("put", nil, tx.PutAll(ctx, []thin.Entry{{Key: thin.UUID{Low: 5}, Value: []byte("five")}}, 0), nil)
	check("put for a time", nil, tx.PutAll(ctx, []thin.Entry{{Key: thin.UUID{High: 1 << 63, Low: 6}, Value: []byte{}}}, time.Hour), nil)
	check("commit", nil, tx.End(ctx, true), nil)
	held, err = cache.GetAll(ctx, []thin.UUID{{High: 1 << 63, Low: 6}, {Low: 7}, {Low: 5}})
	check("get", held, err, [][]byte{{}, nil, []byte("five")})
	size, err := cache.Size(ctx)
	check("size", size, err, 2)
	var scanned []thin.Entry
	err = cache.Scan(ctx, thin.UUID{Low: 5}.Partition(), func(e thin.Entry) error {
		scanned = append(scanned, e)
		return nil
	})
	check("scan", scanned, err, []thin.Entry{{Key: thin.UUID{Low: 5}, Value: []byte("five")}})
	tx, err = cache.Begin(ctx, thin.UUID{Low: 5})
	check("begin", nil, err, nil)
	check("remove", nil, tx.RemoveAll(ctx, []thin.UUID{{Low: 5}}), nil)
	check("roll back", nil, tx.End(ctx, false), nil)
	if at, _, err := c.Clock(ctx); err != nil || at < time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli() {
		t.Errorf("the clock shows %d, error %v", at, err)
	}
	moving, err := c.Copies(ctx, "MOVING")
	check("moving", moving, err, 0)
	durable, err := cache.Durable(ctx)
	check("on disk", durable, err, false)
	check("destroy", nil, cache.Destroy(ctx), nil)
	if _, err := cache.Backups(ctx); err == nil {
		t.Error("the cache was destroyed, and is there")
	}
}

// record passes on a connection to a node, and records its messages.
func record(t *testing.T, to string) (address string) {
	var mu sync.Mutex
	var lines []string
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		if err := os.WriteFile(golden, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Error(err)
		}
	})
	return serve(t, func(from net.Conn) error {
		node, err := net.Dial("tcp", to)
		if err != nil {
			return err
		}
		defer node.Close()
		pass := func(mark string, from io.Reader, to io.Writer) error {
			for {
				message, err := message(from)
				if err != nil {
					return err
				}
				mu.Lock()
				lines = append(lines, mark+" "+hex.EncodeToString(message))
				mu.Unlock()
				if _, err := to.Write(message); err != nil {
					return err
				}
			}
		}
		go func() { _ = pass("<", node, from) }() // it ends with the connection
		return pass(">", from, node)
	})
}

// replay answers as was recorded, to messages as they were recorded.
func replay(t *testing.T) (address string) {
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, func(from net.Conn) error {
		for line := range strings.Lines(string(text)) {
			mark, recorded, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			want, err := hex.DecodeString(recorded)
			if err != nil {
				return err
			}
			if mark == "<" {
				if _, err := from.Write(want); err != nil {
					return err
				}
				continue
			}
			got, err := message(from)
			if err != nil || string(got) != string(want) {
				return fmt.Errorf("got  %x, error %v\nwant %x", got, err, want)
			}
		}
		return nil
	})
}

// message reads a message with its length.
func message(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	m := append(length[:], make([]byte, int(length[0])|int(length[1])<<8|int(length[2])<<16)...)
	_, err := io.ReadFull(r, m[4:])
	return m, err
}

// serve serves one connection. Its error, but for the end of the connection, is one of the test.
func serve(t *testing.T, handle func(net.Conn) error) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if err := handle(c); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return l.Addr().String()
}

// A node of another version refuses the connection, and says why.
func TestAnotherVersion(t *testing.T) {
	address := serve(t, func(from net.Conn) error {
		if _, err := message(from); err != nil {
			return err
		}
		_, err := from.Write([]byte("\x23\x00\x00\x00\x00\x01\x00\x06\x00\x00\x00\x09\x13\x00\x00\x00Unsupported version\x01\x00\x00\x00"))
		return err
	})
	_, _, err := client(t, address).Clock(t.Context())
	want := address + ": the node refuses the connection: Unsupported version (it speaks version 1.6.0 of the protocol, Weir 1.7.0)"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
