// Package page serves the web page: HTML, CSS and JavaScript, embedded and without a build step.
package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/weir-stream/weir/serve/reply"
)

// pageFiles are the files of the page, as written: there is no build step.
//
//go:embed *.html *.css *.js *.svg
var pageFiles embed.FS

// pagePolicy lets the page load and request only what this server serves.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Files serves the files of the page. They contain no state, so they need no token.
func Files(w http.ResponseWriter, r *http.Request) { File(r.PathValue("file")).ServeHTTP(w, r) }

// File serves one file of the page.
func File(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		content, err := pageFiles.ReadFile(name)
		if err != nil {
			reply.Fail(w, reply.Errorf(reply.UnknownPath, "there is no path %s", reply.Quote(r.URL.Path)))
			return
		}
		sum := sha256.Sum256(content)
		header := w.Header()
		header.Set("Content-Security-Policy", pagePolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-cache") // revalidate: another version may be served
		tag := `"` + hex.EncodeToString(sum[:8]) + `"`
		header.Set("ETag", tag)
		if strings.Contains(r.Header.Get("If-None-Match"), tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		reply.RespondAs(w, http.StatusOK, mime.TypeByExtension(path.Ext(name)), content)
	}
}
