package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/internal/testkit/objectstore"
)

// A name is that of an object or of a folder, and a pattern matches as one of files does.
func TestFind(t *testing.T) {
	b := objectstore.New(t)
	for _, key := range []string{
		"a.csv", "b.txt", "dir/1.ndjson", "dir/2.parquet", "dir/_SUCCESS", "dir/deep/3.csv", "dir-2/4.csv",
		"dt=1/x.csv", "dt=1/y.csv", "dt=2/x.csv", "dt=2/deep/x.csv", "table.parquet/part-0.parquet", "odd/[1].csv",
	} {
		b.Put(t, key, []byte(key))
	}
	for key, want := range map[string]string{
		"a.csv": "a.csv", "": "a.csv b.txt", "dir": "dir/1.ndjson dir/2.parquet dir/_SUCCESS", "dir/": "dir/1.ndjson dir/2.parquet dir/_SUCCESS",
		"table.parquet": "table.parquet/part-0.parquet", "dir/*.parquet": "dir/2.parquet", "dir*/*.csv": "dir-2/4.csv",
		"dt=*/x.csv": "dt=1/x.csv dt=2/x.csv", "dt=[12]/?.csv": "dt=1/x.csv dt=1/y.csv dt=2/x.csv", "*.csv": "a.csv", "none/*.csv": "", `odd/\[1].csv`: "odd/[1].csv",
	} {
		got, err := Find(t.Context(), b.URL(key))
		if err != nil {
			t.Errorf("%q: %v", key, err)
		}
		var names []string
		for _, key := range strings.Fields(want) {
			names = append(names, b.URL(key))
		}
		if slices.Sort(got); !cmp.Equal(got, names) {
			t.Errorf("%q: got %q, want %q", key, got, names)
		}
	}
}

// The store lists a thousand objects at a time.
func TestFindsMany(t *testing.T) {
	b := objectstore.New(t)
	const count = 2100
	for i := range count {
		b.Put(t, fmt.Sprintf("dir/%d.csv", i), nil)
	}
	for _, key := range []string{"dir", "dir/*.csv"} {
		names, err := Find(t.Context(), b.URL(key))
		slices.Sort(names)
		if names = slices.Compact(names); err != nil || len(names) != count {
			t.Errorf("%s: %d objects, want %d (%v)", key, len(names), count, err)
		}
	}
}

func open(t *testing.T, name string) *Object {
	t.Helper()
	o, err := Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	return o
}

// content is n bytes, no stretch of which is like another.
func content(n int) []byte {
	c := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(c)
	return c
}

// An object is read like a file.
func TestObject(t *testing.T) {
	b := objectstore.New(t)
	for _, size := range []int{0, 1, 300} {
		o := open(t, b.Put(t, "dir/a", content(size)))
		if err := iotest.TestReader(o, content(size)); err != nil {
			t.Errorf("an object of %d bytes: %v", size, err)
		}
		if n, err := o.ReadAt(make([]byte, 1), -1); n != 0 || !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("ReadAt(-1) = %d, %v; want an error", n, err)
		}
		info, err := o.Stat()
		if err != nil || info.Name() != "a" || info.Size() != int64(size) || !info.Mode().IsRegular() || info.ModTime().IsZero() || info.Sys() == ETag("") {
			t.Errorf("an object of %d bytes: unexpected Stat %+v (%v)", size, info, err)
		}
	}
}

// Where a connection breaks, reading goes on from there with another.
func TestBrokenConnections(t *testing.T) {
	b, want := objectstore.New(t), content(1<<20)
	o := open(t, b.Put(t, "a", want))
	var mu sync.Mutex
	requests := 0
	cut := objectstore.CutAfter(100_000)
	b.Before(func(w http.ResponseWriter, r *http.Request, store http.Handler) {
		mu.Lock()
		requests++
		mu.Unlock()
		cut(w, r, store)
	})
	if got, err := io.ReadAll(o); err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d of %d bytes, then the error %v", len(got), len(want), err)
	}
	if requests < len(want)/100_000 {
		t.Errorf("there were %d requests, so no connection broke", requests)
	}
	part := make([]byte, 300_000)
	if n, err := o.ReadAt(part, 7); err != nil || !bytes.Equal(part, want[7:7+n]) {
		t.Errorf("ReadAt in the middle gives %d bytes, or other ones: error %v", n, err)
	}
	b.Before(objectstore.CutAfter(0))
	const broken = "the connection broke at byte 7 of 300007, 4 times in a row: unexpected EOF"
	if _, err := o.ReadAt(part, 7); fmt.Sprint(err) != broken {
		t.Errorf("got %v, want %s", err, broken)
	}
	// An object that ends too early has not ended.
	b.Before(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("ETag", string(o.info.etag))
		w.Header().Set("Last-Modified", o.info.modified.UTC().Format(http.TimeFormat))
		w.Header().Set("Content-Range", "bytes 7-300006/1048576")
		w.WriteHeader(http.StatusPartialContent)
	})
	const short = "the connection broke at byte 7 of 300007, 4 times in a row: EOF"
	if _, err := o.ReadAt(part, 7); fmt.Sprint(err) != short || errors.Is(err, io.EOF) {
		t.Errorf("got %v, want %s", err, short)
	}
}

// silent is a response that gives some bytes and then nothing, without an end.
type silent struct {
	http.ResponseWriter
	left int
	r    *http.Request
}

func (s *silent) Write(p []byte) (int, error) {
	_, _ = s.ResponseWriter.Write(p[:s.left])
	_ = http.NewResponseController(s.ResponseWriter).Flush()
	<-s.r.Context().Done()
	return s.left, s.r.Context().Err()
}

// A connection that gives nothing more is one that broke.
func TestSilentConnections(t *testing.T) {
	was := patience
	t.Cleanup(func() { patience = was })
	patience = 100 * time.Millisecond
	b, want := objectstore.New(t), content(300)
	o := open(t, b.Put(t, "a", want))
	var mu sync.Mutex
	requests := 0
	b.Before(func(w http.ResponseWriter, r *http.Request, store http.Handler) {
		mu.Lock()
		requests++
		first := requests == 1
		mu.Unlock()
		if first {
			w = &silent{w, 100, r}
		}
		store.ServeHTTP(w, r)
	})
	if got, err := io.ReadAll(o); err != nil || !bytes.Equal(got, want) || requests < 2 {
		t.Errorf("read %d of %d bytes in %d requests, error %v", len(got), len(want), requests, err)
	}
	b.Before(func(w http.ResponseWriter, r *http.Request, store http.Handler) { store.ServeHTTP(&silent{w, 0, r}, r) })
	const broken = "the connection broke at byte 7 of 300, 4 times in a row: nothing came for 100ms"
	if _, err := o.ReadAt(make([]byte, 300), 7); fmt.Sprint(err) != broken {
		t.Errorf("got %v, want %s", err, broken)
	}
}

// What is read is the object as it was opened, or an error.
func TestReplacedObject(t *testing.T) {
	without := func(header string) objectstore.Handler {
		return func(w http.ResponseWriter, r *http.Request, store http.Handler) {
			r.Header.Del(header)
			store.ServeHTTP(w, r)
		}
	}
	for name, before := range map[string]objectstore.Handler{"": nil, "a store that takes no notice of If-Match": without("If-Match")} {
		b, was := objectstore.New(t), content(1<<20)
		o := open(t, b.Put(t, "a", was))
		b.Before(objectstore.CutAfter(5))
		if _, err := io.ReadFull(o, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		b.Put(t, "a", bytes.ToUpper(was))
		b.Before(before)
		if _, err := io.ReadAll(o); !errors.Is(err, errChanged) {
			t.Errorf("%s: reading on: got error %v, want that it has changed", name, err)
		}
		if _, err := o.ReadAt(make([]byte, 1), 1); !errors.Is(err, errChanged) {
			t.Errorf("%s: ReadAt: got error %v, want that it has changed", name, err)
		}
	}
	b := objectstore.New(t)
	o := open(t, b.Put(t, "a", content(10)))
	b.Before(without("Range"))
	const others = "the store was asked for the bytes from 5 on, and sends others"
	if _, err := o.ReadAt(make([]byte, 1), 5); fmt.Sprint(err) != others {
		t.Errorf("got %v, want %s", err, others)
	}
}

// Reading ends with its context.
func TestReadingIsStopped(t *testing.T) {
	b := objectstore.New(t)
	ctx, stop := context.WithCancel(t.Context())
	o, err := Open(ctx, b.Put(t, "a", content(10)))
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := io.ReadAll(o); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want context.Canceled", err)
	}
}

// What a store refuses is said in plain words, with the name.
func TestRefusals(t *testing.T) {
	b := objectstore.New(t)
	b.Put(t, "a.csv", []byte("a"))
	refuse := func(status int, code string, header ...string) objectstore.Handler {
		return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
			if header != nil {
				w.Header().Set(header[0], header[1])
			}
			objectstore.Refuse(w, status, code, "no")
		}
	}
	for _, c := range []struct {
		name   string
		before objectstore.Handler
		want   string
	}{
		{"s3://none/a.csv", nil, "s3://none/a.csv/: there is no such bucket"},
		{"s3://none/*.csv", nil, "s3://none/: there is no such bucket"},
		{b.URL("b.csv"), nil, b.URL("b.csv") + ": there is no such object, and no folder with objects"},
		{b.URL("dir/"), nil, b.URL("dir/") + ": there is no such object, and no folder with objects"},
		{b.URL("a.csv"), refuse(403, "AccessDenied"), b.URL("a.csv") + ": access is denied (AccessDenied: Access Denied.): an object needs s3:GetObject, a folder or a pattern s3:ListBucket"},
		{b.URL("x/*"), refuse(403, "AccessDenied"), b.URL("x/") + ": access is denied (AccessDenied: no): an object needs s3:GetObject, a folder or a pattern s3:ListBucket"},
		{b.URL("x/*"), refuse(301, "PermanentRedirect", "X-Amz-Bucket-Region", "eu-west-1"), b.URL("x/") + ": the bucket is in region eu-west-1: set AWS_REGION"},
		{b.URL("x/*"), refuse(400, "InvalidRequest"), b.URL("x/") + ": the store answers 400 (InvalidRequest: no)"},
		{b.URL("[/x"), nil, b.URL("[/x") + ": syntax error in pattern"},
		{"s3://", nil, "s3://: expected s3://BUCKET/KEY; only the key may be a pattern"},
		{"s3://b*/x", nil, "s3://b*/x: expected s3://BUCKET/KEY; only the key may be a pattern"},
	} {
		b.Before(c.before)
		if _, err := Find(t.Context(), c.name); fmt.Sprint(err) != c.want {
			t.Errorf("%s\ngot  %v\nwant %s", c.name, err, c.want)
		}
	}
	b.Before(nil)
	if _, err := Open(t.Context(), b.URL("b.csv")); fmt.Sprint(err) != b.URL("b.csv")+": there is no such object, or no such bucket" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing object: got error %v", err)
	}
}

// use makes the client of the process anew, from the environment of the test.
func use(t *testing.T) {
	was := load
	t.Cleanup(func() { load = was })
	load = sync.OnceValues(loadStore)
}

// What the environment lacks is said with what to set, and a store that is away ends the command.
func TestEnvironment(t *testing.T) {
	const away = "the store cannot be reached: nothing listens at 127.0.0.1:1: check the address, and that the server runs"
	for _, c := range []struct{ name, value, want string }{
		{"AWS_SECRET_ACCESS_KEY", "", "no AWS credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE or a role: "},
		{"AWS_ENDPOINT_URL_S3", "minio:9000", `the endpoint "minio:9000" is not one such as http://minio:9000`},
		{"AWS_ENDPOINT_URL_S3", "http://minio:9000/s3", `the endpoint "http://minio:9000/s3" is not one such as http://minio:9000`},
		{"AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1", away},
		{"AWS_ENDPOINT_URL", "http://127.0.0.1:1", away},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := objectstore.New(t)
			if c.name == "AWS_ENDPOINT_URL" {
				t.Setenv("AWS_ENDPOINT_URL_S3", "")
			}
			t.Setenv("AWS_MAX_ATTEMPTS", "1")
			t.Setenv(c.name, c.value)
			use(t)
			if _, err := Open(t.Context(), b.URL("k")); !strings.HasPrefix(fmt.Sprint(err), b.URL("k")+": "+c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// Without a region and with endpoints in the profile, the store is found all the same.
func TestProfile(t *testing.T) {
	b := objectstore.New(t)
	name := b.Put(t, "a", content(3))
	file := filepath.Join(t.TempDir(), "config")
	profile := "[profile x]\nservices = here\n[services here]\ns3 =\n  endpoint_url = " + os.Getenv("AWS_ENDPOINT_URL_S3") + "\n"
	if err := os.WriteFile(file, []byte(profile), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"AWS_ENDPOINT_URL_S3": "", "AWS_REGION": "", "AWS_PROFILE": "x", "AWS_CONFIG_FILE": file} {
		t.Setenv(name, value)
	}
	use(t)
	if got, err := io.ReadAll(open(t, name)); err != nil || !bytes.Equal(got, content(3)) {
		t.Errorf("read %d bytes (%v), want 3", len(got), err)
	}
	t.Setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
	if c, err := config.LoadDefaultConfig(t.Context()); err != nil || endpointOf(&c) != amazon {
		t.Errorf("the endpoint is %s (%v), want Amazon's", endpointOf(&c), err)
	}
}
