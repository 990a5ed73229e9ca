package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// suggestions returns the completions that a shell gets.
func suggestions(t *testing.T, args ...string) string {
	t.Helper()
	out, err := weir(t, append([]string{"__completeNoDesc"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(out), " ")
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"features": [
			{"name": "device_cards_7d", "keys": [{"name": "device_id"}]}, {"name": "device_tx_7d", "keys": [{"name": "device_id"}]},
			{"name": "merchant_last", "keys": [{"name": "merchant"}, {"name": "online"}]}],
			"services": [{"name": "risk"}]}`)
	}))
	defer server.Close()
	for _, c := range []struct{ args, want string }{
		{"query --address A dev", "device_cards_7d device_tx_7d :4"},
		{"query --address A merchant_last ", "merchant= online= device_cards_7d device_tx_7d :4"},
		{"query --address A device_tx_7d devi", "device_id= device_cards_7d :4"},
		{"query --address A device_tx_7d device_i", "device_id= :6"},
		{"query --address A device_tx_7d device_id=d1 merchant_last ", "merchant= online= device_cards_7d :4"},
		{"query --address A --service ", "risk :4"},
		{"query --address 127.0.0.1:1 ", ":4"},
		{"query --address 127.0.0.1:1 --service ", ":4"},
		{"run --roles ", "processor api processor,api :4"},
		{"ver", "version :4"},
	} {
		if got := suggestions(t, strings.Split(strings.Replace(c.args, " A ", " "+server.URL+" ", 1), " ")...); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.args, got, c.want)
		}
	}
}

func TestManualPages(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "man", "man1")
	if _, err := weir(t, "man", folder); err != nil {
		t.Fatal(err)
	}
	for _, c := range newRootCommand().Commands() {
		if page := read(t, filepath.Join(folder, "weir-"+c.Name()+".1")); !strings.Contains(page, ".TH \"WEIR\"") {
			t.Errorf("the manual page of %s has no header:\n%s", c.Name(), page)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := weir(t, "man", file); err == nil || message(err) != "weir: mkdir "+file+": not a directory" {
		t.Errorf("a file in place of the folder: got error %v", err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
