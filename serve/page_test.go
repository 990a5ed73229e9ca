package serve

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
)

// reference matches what a file of the page loads.
var reference = regexp.MustCompile(`(?:src|href)="([^"#]+)"|from '([^']+)'`)

// The page loads only what this server serves, and everything that it loads exists.
func TestPageIsServedWhole(t *testing.T) {
	h, c := newHandler(&fakeReader{}, nil), theContract()
	types := map[string]string{
		".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
	}
	get := func(path, etag string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
		r.Header.Set("If-None-Match", etag)
		h.ServeHTTP(w, r)
		return w
	}
	files, err := os.ReadDir("page")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		path := "/page/" + file.Name()
		if strings.HasSuffix(path, ".go") {
			continue
		}
		if file.Name() == "index.html" {
			path = "/"
		}
		w := get(path, "")
		body := w.Body.String()
		if want := types[file.Name()[strings.LastIndex(file.Name(), "."):]]; w.Code != http.StatusOK || w.Header().Get("Content-Type") != want {
			t.Errorf("%s: %d, Content-Type %q; want 200 and %q", path, w.Code, w.Header().Get("Content-Type"), want)
		}
		if policy := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; ") ||
			strings.Contains(policy, "unsafe") {
			t.Errorf("%s: unexpected Content-Security-Policy %q", path, policy)
		}
		for _, found := range reference.FindAllStringSubmatch(body, -1) {
			target := strings.TrimPrefix(found[1], "page/") + strings.TrimPrefix(found[2], "./")
			if w := get("/page/"+target, ""); w.Code != http.StatusOK {
				t.Errorf("%s loads %q: got %d, want 200", path, target, w.Code)
			}
		}
		documented := path
		if path != "/" {
			documented = "/page/{file}"
		}
		for status, response := range map[string]*httptest.ResponseRecorder{"200": w, "304": get(path, w.Header().Get("ETag"))} {
			_, of := c.at("paths", documented, "get", "responses", status)
			content, _ := of["content"].(map[string]any)
			kind, _, _ := strings.Cut(response.Header().Get("Content-Type"), ";")
			if of == nil || content[kind] == nil && kind != "" {
				t.Errorf("%s: a response %s of the type %q is not in /openapi.yaml", path, status, kind)
			}
			c.checkHeaders(t, path, response.Header(), of)
		}
		if again := get(path, w.Header().Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s: with If-None-Match: got %d with %d bytes, want 304 with none", path, again.Code, again.Body.Len())
		}
	}
}

// Files are sent whole: an invalid range would be refused in another format.
func TestPageIsSentWhole(t *testing.T) {
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/page/page.css", nil)
	r.Header.Set("Range", "bytes=9-1")
	r.Header.Set("If-Match", "x")
	newHandler(&fakeReader{}, nil).ServeHTTP(w, r)
	if want, err := os.ReadFile("page/page.css"); err != nil || w.Code != http.StatusOK || w.Body.String() != string(want) {
		t.Errorf("got %d with %d bytes, want 200 with %d; error %v", w.Code, w.Body.Len(), len(want), err)
	}
}

func TestPathsOutsideThePage(t *testing.T) {
	h := newHandler(&fakeReader{}, nil)
	for _, test := range []struct {
		method, target string
		status         int
		want           string
	}{
		{"GET", "/page/none.js", 404, `{"error":{"code":"unknown_path","message":"there is no path \"/page/none.js\""}}`},
		{"GET", "/page/..%2fpage.go", 404, `{"error":{"code":"unknown_path","message":"there is no path \"/page/../page.go\""}}`},
		{"GET", "/index.html", 404, `{"error":{"code":"unknown_path","message":"there is no path \"/index.html\""}}`},
		{"POST", "/", 405, `{"error":{"code":"method_not_allowed","message":"/ takes GET, not POST"}}`},
		{"POST", "/v1/status", 405, `{"error":{"code":"method_not_allowed","message":"/v1/status takes GET, not POST"}}`},
	} {
		if w := do(t, h, test.method, test.target, ""); w.Code != test.status || w.Body.String() != test.want+"\n" {
			t.Errorf("%s %s: %d %s, want %d %s", test.method, test.target, w.Code, w.Body, test.status, test.want)
		}
	}
}
