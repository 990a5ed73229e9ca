package main

import (
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// Profiles are served only if the settings say so, and by no other listener: only on this machine unless another
// address is set.
func TestProfiles(t *testing.T) {
	t.Parallel()
	flags, _ := servers(t, allTopics)
	p := start(t, append([]string{"run", "--profiles.listen", ":0"}, flags...)...)
	base := p.address(t)
	p.shows(t, "profiles are served")
	address := regexp.MustCompile(`profiles are served" address=(\S+)`).FindStringSubmatch(p.err.String())[1]
	if host, _, err := net.SplitHostPort(address); err != nil || host != "127.0.0.1" {
		t.Errorf("profiles are served at %s, error %v; want 127.0.0.1 only", address, err)
	}
	for path, want := range map[string]string{
		"/debug/pprof/": "goroutine", "/debug/pprof/heap?debug=1": "heap profile", "/debug/pprof/cmdline": "",
		"/debug/pprof/profile?seconds=1": "", "/debug/pprof/symbol": "num_symbols",
	} {
		if code, body := statusOf(t, "http://"+address+path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: got %d %.200s, want 200 and %q", path, code, body, want)
		}
	}
	r, err := http.NewRequest("GET", "http://"+address+"/debug/pprof/heap", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.com"
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("a request to another host name: got %s %s, want 421", answer.Status, body)
	}
	if code, _ := statusOf(t, base+"/debug/pprof/"); code != http.StatusNotFound {
		t.Errorf("the API answers %d to a request for profiles, want 404", code)
	}
	p.stop()
	if err := p.wait(t); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("profiles are still served after the process has stopped")
	}
}
