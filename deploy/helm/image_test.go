package helm_test

import (
	"os"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
)

// By default the pods run the image that the release workflow pushes for the chart's version, as the
// manifests without Helm do.
func TestImage(t *testing.T) {
	c := load(t, "weir")
	name := strings.TrimPrefix(c.Metadata.Sources[0], "https://github.com/")
	image := "ghcr.io/" + name + ":" + c.Metadata.Version
	if c.Metadata.AppVersion != c.Metadata.Version {
		t.Errorf("the chart %s is for the image %s", c.Metadata.Version, c.Metadata.AppVersion)
	}
	for _, pod := range []string{"Deployment/weir-api", "Deployment/weir-processor"} {
		if got := decode[apps.Deployment](t, mustRender(t, ""), pod).Spec.Template.Spec.Containers[0].Image; got != image {
			t.Errorf("%s runs %s, want %s", pod, got, image)
		}
	}
	for path, line := range map[string]string{
		"../../.github/workflows/release.yml":             "images: ghcr.io/${{ github.repository }}\n",
		"../kubernetes/base/api.yaml":                     "image: " + image + "\n",
		"../kubernetes/base/processor.yaml":               "image: " + image + "\n",
		"../kubernetes/examples/sidecar/rule-engine.yaml": "image: " + image + "\n",
		"../../docs/deploy.md":                            "`ghcr.io/" + name + "`",
	} {
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), line) {
			t.Errorf("%s does not contain %q: %v", path, line, err)
		}
	}
}
