package serve

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strings"
)

// pageFiles are the page's, as they are written: there is no step of building.
//
//go:embed page
var pageFiles embed.FS

// pagePolicy lets the page load and ask nothing but what this server serves.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// assets serves the files of the page. They hold nothing of the state, and so
// ask for no token.
func assets(w http.ResponseWriter, r *http.Request) { asset(r.PathValue("file")).ServeHTTP(w, r) }

// asset serves one file of the page.
func asset(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		content, err := pageFiles.ReadFile("page/" + name)
		if err != nil {
			fail(w, errorf(UnknownPath, "there is no path %s", quote(r.URL.Path)))
			return
		}
		sum := sha256.Sum256(content)
		header := w.Header()
		header.Set("Content-Security-Policy", pagePolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-cache") // ask whether it has changed: another version may be served
		tag := `"` + hex.EncodeToString(sum[:8]) + `"`
		header.Set("ETag", tag)
		if strings.Contains(r.Header.Get("If-None-Match"), tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		respondAs(w, http.StatusOK, mime.TypeByExtension(path.Ext(name)), content)
	}
}
