package helm_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite testdata")

func load(t *testing.T, path string) *chart.Chart {
	t.Helper()
	c, err := loader.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render returns the documents that `helm install weir` would apply, by kind and name, such as
// "Deployment/weir-api".
func render(c *chart.Chart, values string) (map[string]string, error) {
	var given map[string]any
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependencies(c, given); err != nil {
		return nil, err
	}
	options := chartutil.ReleaseOptions{Name: "weir", Namespace: "fraud", IsInstall: true}
	all, err := chartutil.ToRenderValues(c, given, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	documents := map[string]string{}
	for path, content := range files {
		if filepath.Ext(path) != ".yaml" {
			documents[filepath.Base(path)] = content
			continue
		}
		for _, document := range releaseutil.SplitManifests(content) {
			var head struct {
				Kind     string
				Metadata struct{ Name string }
			}
			if err := yaml.Unmarshal([]byte(document), &head); err != nil {
				return nil, err
			}
			if head.Kind != "" {
				documents[head.Kind+"/"+head.Metadata.Name] = document
			}
		}
	}
	return documents, nil
}

func mustRender(t *testing.T, values string) map[string]string {
	t.Helper()
	documents, err := render(load(t, "weir"), values)
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

// decode reads a document into its Kubernetes type; an unknown field is an error.
func decode[T any](t *testing.T, documents map[string]string, key string) *T {
	t.Helper()
	document, ok := documents[key]
	if !ok {
		t.Fatalf("no %s in %v", key, slices.Sorted(maps.Keys(documents)))
	}
	into := new(T)
	if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
		t.Fatalf("%s: %v\n%s", key, err, document)
	}
	return into
}

// scaledObject has the fields of KEDA's type that the chart uses: KEDA's own module brings some
// hundred others.
type scaledObject struct {
	APIVersion, Kind string
	Metadata         struct {
		Name   string
		Labels map[string]string
	}
	Spec struct {
		ScaleTargetRef                                    struct{ Name, Kind string }
		MinReplicaCount, MaxReplicaCount, PollingInterval int32
		Advanced                                          struct {
			HorizontalPodAutoscalerConfig struct {
				Behavior autoscaling.HorizontalPodAutoscalerBehavior
			}
		}
		Triggers []struct {
			Type              string
			Metadata          map[string]string
			AuthenticationRef *struct{ Name string }
		}
	}
}

// known reads every document into its type, and fails for a kind without a type here.
func known(t *testing.T, documents map[string]string) {
	t.Helper()
	for key := range documents {
		switch kind, _, _ := strings.Cut(key, "/"); kind {
		case "Deployment":
			decode[apps.Deployment](t, documents, key)
		case "StatefulSet":
			decode[apps.StatefulSet](t, documents, key)
		case "ConfigMap":
			decode[core.ConfigMap](t, documents, key)
		case "Service":
			decode[core.Service](t, documents, key)
		case "ServiceAccount":
			decode[core.ServiceAccount](t, documents, key)
		case "HorizontalPodAutoscaler":
			decode[autoscaling.HorizontalPodAutoscaler](t, documents, key)
		case "PodDisruptionBudget":
			decode[policy.PodDisruptionBudget](t, documents, key)
		case "NetworkPolicy":
			decode[networking.NetworkPolicy](t, documents, key)
		case "ServiceMonitor":
			decode[monitoring.ServiceMonitor](t, documents, key)
		case "ScaledObject":
			decode[scaledObject](t, documents, key)
		case "NOTES.txt":
		default:
			t.Errorf("this test does not know the type of %s", key)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		write(t, path, got)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs from the rendered chart; if that is intended, go test -update writes it:\n%s", path, got)
	}
}
