package main

import (
	"os/exec"
	"strings"
	"testing"
)

// The image has no stand-ins for Kafka and Redis, nor the interpreter of scripts that comes with them.
func TestProductionHasNoStandIns(t *testing.T) {
	t.Parallel()
	if !strings.Contains(read(t, "../../Dockerfile"), "go build -tags production ") {
		t.Error("the image is not built with the tag production")
	}
	for tags, want := range map[string]bool{"": true, "production": false} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", tags, ".").Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, standIn := range []string{"github.com/alicebob/miniredis/v2", "github.com/yuin/gopher-lua", "github.com/twmb/franz-go/pkg/kfake"} {
			if has := strings.Contains("\n"+string(out), "\n"+standIn+"\n"); has != want {
				t.Errorf("with the tags %q %s is linked: %v, want %v", tags, standIn, has, want)
			}
		}
	}
}
