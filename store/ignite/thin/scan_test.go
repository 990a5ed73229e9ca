package thin

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"
)

// A cursor is known on its connection only. On the next one its number is that of another scan, whose values are not taken for the
// rest of this one.
func TestScanEndsWithItsConnection(t *testing.T) {
	ours, others := Entry{UUID{Low: 1}, []byte("ours")}, Entry{UUID{Low: 2}, []byte("another scan's")}
	page := func(reply *encoder, e Entry, more bool) {
		reply.int(1)
		reply.uuid(e.Key)
		reply.byteArray(e.Value)
		reply.bool(more)
	}
	address := fakeNode(t, func(connection int, op int16, reply *encoder) (lost bool) {
		switch op {
		case opScan:
			reply.long(1)
			page(reply, ours, true)
		case opScanPage:
			page(reply, others, false)
			return connection == 0
		}
		return false
	})
	c := New(Config{Addresses: []string{address}, Login: Login{Timeout: 10 * time.Second}, Request: 10 * time.Second})
	t.Cleanup(func() { _ = c.Close() })
	var visited []UUID
	err := c.Cache("weir.scan").Scan(t.Context(), 0, func(e Entry) error {
		visited = append(visited, e.Key)
		return nil
	})
	if _, lost := errors.AsType[*LostError](err); !lost {
		t.Errorf("the connection was lost between two pages, and the scan's error is %v", err)
	}
	if len(visited) != 1 || visited[0] != ours.Key {
		t.Errorf("visited %v, want the value of the first page only", visited)
	}
}

// fakeNode serves connections, which are numbered from 0, as the only node of a cluster that does not know where partitions are.
// answer appends to the reply to other requests, or has the connection end instead.
func fakeNode(t *testing.T, answer func(connection int, op int16, reply *encoder) (lost bool)) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	node := UUID{Low: 1}
	serve := func(c *conn, connection int) {
		defer c.net.Close()
		if _, err := readMessage(c.net); err != nil {
			return
		}
		welcome := encoder{make([]byte, 4)}
		welcome.bool(true)
		welcome.byteArray(nil)
		welcome.uuid(node)
		for err := c.send(&welcome); err == nil; {
			message, failed := readMessage(c.net)
			if failed != nil {
				return
			}
			request := decoder{bytes: message}
			op, id := request.short(), request.long()
			reply := encoder{make([]byte, 4)}
			reply.long(id)
			reply.short(0)
			switch op {
			case opNodes:
				reply.bool(true)
				reply.long(1)
				reply.int(1)
				reply.long(int64(node.High))
				reply.long(int64(node.Low))
			case opPartitions:
				reply.long(1)
				reply.int(0)
				reply.int(0)
			default:
				if answer(connection, op, &reply) {
					return
				}
			}
			err = c.send(&reply)
		}
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for connection := 0; ; connection++ {
			accepted, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { serve(&conn{net: accepted}, connection) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return l.Addr().String()
}
