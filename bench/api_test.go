package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/serve"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// apiEnv makes the binary answer questions from the state in the Redis at that address, until its
// standard input ends.
const apiEnv = "WEIR_BENCH_API"

// api is an API in a process of its own.
type api struct {
	addr string
	free chan *wire // idle connections
}

// startAPI starts an API that stops when the benchmark ends.
func startAPI(b *testing.B, redisAddr string) *api {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), apiEnv+"="+redisAddr)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	a := &api{free: make(chan *wire, manyAskers)}
	b.Cleanup(func() {
		a.closeIdle()
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			b.Errorf("the API: %v", err)
		}
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	a.addr = strings.TrimSpace(addr)
	return a
}

// answer runs the API.
func answer(redisAddr string) error {
	registry, err := defined.Parse(questionDefinitions)
	if err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Addr: redisAddr})
	defer client.Close()
	s := redisstore.New(client, namespace, questionShards)
	mux := http.NewServeMux()
	mux.Handle("/", serve.New(serve.Config{
		Registry: func() *features.Registry { return registry }, Reader: s,
	}))
	mux.HandleFunc("/floor", func(w http.ResponseWriter, r *http.Request) { floor(w, r, client, registry) })
	mux.HandleFunc("/usage", func(w http.ResponseWriter, _ *http.Request) {
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		fmt.Fprintln(w, cpuSeconds(), memory.Mallocs)
	})
	mux.HandleFunc("/profile", pprof.Profile)
	server, err := serve.Start("127.0.0.1:0", mux, nil, slog.Default())
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Shutdown(context.Background())
	}()
	fmt.Println(server.Addr())
	return <-server.Done()
}

// floor measures the cost of net/http and go-redis alone: it reads the body and the keys of
// question n, and answers with the requested number of bytes.
func floor(w http.ResponseWriter, r *http.Request, client *redis.Client, registry *features.Registry) {
	values := r.URL.Query()
	n, err := strconv.ParseUint(values.Get("n"), 10, 64)
	size, sizeErr := strconv.Atoi(values.Get("bytes"))
	_, bodyErr := io.Copy(io.Discard, r.Body)
	if err := errors.Join(err, sizeErr, bodyErr, readKeys(r.Context(), client, questionKeys(n, registry))); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(size))
	_, _ = w.Write(make([]byte, size))
}

// answerSize returns the size, in bytes, of the answer to a question.
func (a *api) answerSize(b *testing.B, body []byte) int64 {
	response, err := http.Post("http://"+a.addr+"/v1/query", "application/json", bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	n, err := io.Copy(io.Discard, response.Body)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// post sends a request and discards the response.
func (a *api) post(path string, body []byte) error {
	w, err := a.dial()
	if err != nil {
		return err
	}
	if err := w.post(a.addr, path, body); err != nil {
		return errors.Join(err, w.conn.Close())
	}
	a.free <- w
	return nil
}

func (a *api) dial() (*wire, error) {
	select {
	case w := <-a.free:
		return w, nil
	default:
	}
	conn, err := net.Dial("tcp", a.addr)
	if err != nil {
		return nil, err
	}
	return &wire{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}, nil
}

func (a *api) closeIdle() {
	for range len(a.free) {
		(<-a.free).conn.Close()
	}
}

// usage returns what the API's process has used: CPU time in seconds, and heap objects allocated.
func (a *api) usage(b *testing.B) (cpu float64, mallocs uint64) {
	response, err := http.Get("http://" + a.addr + "/usage")
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := fmt.Fscan(response.Body, &cpu, &mallocs); err != nil {
		b.Fatal(err)
	}
	return cpu, mallocs
}

func (a *api) cpu(b *testing.B) float64 {
	cpu, _ := a.usage(b)
	return cpu
}

// profile writes a CPU profile of the API's process.
func (a *api) profile(b *testing.B, file string, over time.Duration) {
	response, err := http.Get(fmt.Sprintf("http://%s/profile?seconds=%.0f", a.addr, over.Seconds()))
	if err != nil {
		b.Error(err)
		return
	}
	defer response.Body.Close()
	profile, err := io.ReadAll(response.Body)
	if err := errors.Join(err, os.WriteFile(file, profile, 0o600)); err != nil {
		b.Error(err)
	}
}

// wire is an HTTP/1.1 connection that reads no response header except Content-Length. The client of
// net/http would cost as much as the answers do.
type wire struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte
}

func (w *wire) post(host, path string, body []byte) error {
	w.out = fmt.Appendf(w.out[:0], "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		path, host, len(body))
	w.out = append(w.out, body...)
	if _, err := w.conn.Write(w.out); err != nil {
		return err
	}
	status, length := "", -1
	for {
		line, err := w.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimSpace(line)
		if status == "" {
			status = string(line)
			continue
		}
		if len(line) == 0 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(": ")); bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return fmt.Errorf("%s, without a length", status)
	}
	if status != "HTTP/1.1 200 OK" {
		text, _ := io.ReadAll(io.LimitReader(w.in, int64(length)))
		return fmt.Errorf("%s: %s", status, text)
	}
	_, err := w.in.Discard(length)
	return err
}
