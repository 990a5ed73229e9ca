// Package objectstore is an S3-compatible store inside the process.
package objectstore

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/weir-stream/weir/internal/testkit/auth"
)

// Bucket is a bucket of the store.
type Bucket struct{ Name string }

// A Handler answers a request, or lets the store do so.
type Handler func(w http.ResponseWriter, r *http.Request, store http.Handler)

// server is the store of the process. It never ends, because clients are made once in a process.
type server struct {
	url     string
	objects *s3mem.Backend

	mu      sync.Mutex
	buckets int
	before  map[string]Handler // by bucket
}

var shared = sync.OnceValue(func() *server {
	s := &server{objects: s3mem.New(), before: map[string]Handler{}}
	all := gofakes3.New(s.objects, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	store := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bucket, key := split(r)
		if match := r.Header.Get("If-Match"); match != "" && match != s.etag(bucket, key) { // which the library does not look at
			Refuse(w, http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
			return
		}
		all.ServeHTTP(w, r)
	})
	s.url = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bucket, _ := split(r)
		s.mu.Lock()
		before := s.before[bucket]
		s.mu.Unlock()
		if before == nil {
			store.ServeHTTP(w, r)
			return
		}
		before(w, r, store)
	})).URL
	return s
})

func split(r *http.Request) (bucket, key string) {
	bucket, key, _ = strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return bucket, key
}

// etag is the ETag of an object, empty if there is none.
func (s *server) etag(bucket, key string) string {
	o, err := s.objects.HeadObject(bucket, key)
	if err != nil {
		return ""
	}
	return `"` + hex.EncodeToString(o.Hash) + `"`
}

// New makes a bucket. AWS' own tools find the store in the environment of the test, with credentials.
func New(t testing.TB) *Bucket {
	t.Helper()
	s := shared()
	auth.UseAWS(t, "us-east-1")
	t.Setenv("AWS_ENDPOINT_URL_S3", s.url)
	s.mu.Lock()
	s.buckets++
	b := &Bucket{fmt.Sprintf("bucket-%d", s.buckets)}
	s.mu.Unlock()
	if err := s.objects.CreateBucket(b.Name); err != nil {
		t.Fatal(err)
	}
	return b
}

// URL is the name of an object.
func (b *Bucket) URL(key string) string { return "s3://" + b.Name + "/" + key }

// Put writes an object, and returns its name.
func (b *Bucket) Put(t testing.TB, key string, content []byte) string {
	t.Helper()
	written := map[string]string{"Last-Modified": time.Now().UTC().Format(http.TimeFormat)}
	if _, err := shared().objects.PutObject(b.Name, key, written, bytes.NewReader(content), int64(len(content)), nil); err != nil {
		t.Fatal(err)
	}
	return b.URL(key)
}

// Before sets what gets the requests to the bucket; nil for the store.
func (b *Bucket) Before(h Handler) {
	s := shared()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before[b.Name] = h
}

// CutAfter lets each request of the body of an object break after some bytes.
func CutAfter(bytes int) Handler {
	return func(w http.ResponseWriter, r *http.Request, store http.Handler) {
		store.ServeHTTP(&cut{w, bytes, r.Method == http.MethodGet && r.Header.Get("Range") != ""}, r)
	}
}

// cut is a response that breaks.
type cut struct {
	http.ResponseWriter
	left   int
	breaks bool
}

func (c *cut) Write(p []byte) (int, error) {
	if !c.breaks || len(p) <= c.left {
		c.left -= len(p)
		return c.ResponseWriter.Write(p)
	}
	_, _ = c.ResponseWriter.Write(p[:c.left])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

// Refuse answers with an error as S3 does.
func Refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, message)
}
