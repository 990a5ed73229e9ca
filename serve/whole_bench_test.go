package serve

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/weir-stream/weir/serve/reply"
)

// BenchmarkWholeAnswers asks for answers of several sizes over the loopback, one after another, from a server that
// holds back writes and from one that uses net/http's buffer.
func BenchmarkWholeAnswers(b *testing.B) {
	for _, size := range []int{3 << 10, 6 << 10, 24 << 10} {
		body := bytes.Repeat([]byte("x"), size)
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { reply.Whole(w, r, body) })
		for _, held := range []bool{false, true} {
			b.Run(fmt.Sprintf("%dKB/held=%v", size>>10, held), func(b *testing.B) { benchmarkAnswers(b, h, held) })
		}
	}
}

func benchmarkAnswers(b *testing.B, h http.Handler, held bool) {
	var writes atomic.Int64
	s := httptest.NewUnstartedServer(h)
	s.Config.ConnContext = reply.WithConnection
	var l net.Listener = counting{s.Listener, &writes}
	if held {
		l = reply.NewListener(l, 1000)
	}
	s.Listener = l
	s.Start()
	defer s.Close()
	client := s.Client()
	for b.Loop() {
		response, err := client.Get(s.URL)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			b.Fatal(err)
		}
		response.Body.Close()
	}
	b.ReportMetric(float64(writes.Load())/float64(b.N), "writes/op")
}
