package main

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/cmd/weir/node"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
)

const kubernetes = "../../deploy/kubernetes/"

// manifest has the fields that these tests read from a Kubernetes document.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string // of a ConfigMap
	Spec     struct {
		Replicas *int
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
			Name        string            `yaml:"app.kubernetes.io/name"` // of a Service
		}
		PodSelector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		} `yaml:"podSelector"`
		Template struct {
			Metadata struct{ Labels, Annotations map[string]string }
			Spec     pod
		}
		ScaleTargetRef struct{ Name string } `yaml:"scaleTargetRef"`
		Ports          []struct {
			TargetPort string `yaml:"targetPort"`
		}
		Triggers []struct{ Metadata map[string]string }
	}
}

type pod struct {
	Grace          int         `yaml:"terminationGracePeriodSeconds"`
	ServiceLinks   *bool       `yaml:"enableServiceLinks"`
	Containers     []container `yaml:"containers"`
	InitContainers []container `yaml:"initContainers"`
	Volumes        []struct {
		Name      string
		ConfigMap struct{ Name string } `yaml:"configMap"`
	}
}

type container struct {
	Name, Image string
	Args        []string
	Ports       []struct {
		Name string
		Port int `yaml:"containerPort"`
	}
	Env                                         []struct{ Name, Value string }
	LivenessProbe, ReadinessProbe, StartupProbe probe
	Lifecycle                                   struct {
		PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
	}
	VolumeMounts []struct {
		Name string
		Path string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

type probe struct {
	Get *struct{ Path, Port string } `yaml:"httpGet"`
}

// UnmarshalYAML decodes the probes, whose keys begin with a lower-case letter.
func (c *container) UnmarshalYAML(n *yaml.Node) error {
	type plain container
	var probes struct {
		Liveness  probe `yaml:"livenessProbe"`
		Readiness probe `yaml:"readinessProbe"`
		Startup   probe `yaml:"startupProbe"`
	}
	if err := errors.Join(n.Decode((*plain)(c)), n.Decode(&probes)); err != nil {
		return err
	}
	c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = probes.Liveness, probes.Readiness, probes.Startup
	return nil
}

type kustomization struct {
	Resources          []string
	ConfigMapGenerator []struct {
		Name  string
		Files []string
	} `yaml:"configMapGenerator"`
	Images []struct{ Name string }
}

// manifests reads a folder's kustomization and the documents it names, including those of its
// bases.
func manifests(t *testing.T, folder string) (k kustomization, all []manifest) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(folder, "kustomization.yaml"))), &k); err != nil {
		t.Fatal(err)
	}
	for _, name := range k.Resources {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			_, more := manifests(t, path)
			all = append(all, more...)
			continue
		}
		all = append(all, documents(t, path)...)
	}
	return k, all
}

// documents reads a file of manifests.
func documents(t *testing.T, path string) (all []manifest) {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(read(t, path)))
	for {
		var m manifest
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, m)
	}
}

// The binary understands the flags, settings, port and paths in the manifests, and they give it
// enough time to stop.
func TestKubernetesRunsWeir(t *testing.T) {
	t.Parallel()
	for folder, deployments := range map[string][]string{
		"base": {"weir-processor", "weir-api"}, "examples/sidecar": {"rule-engine"},
	} {
		k, all := manifests(t, kubernetes+folder)
		file := filepath.Join(kubernetes, folder, "weir.yaml")
		cfg, err := config.Load(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		if k.ConfigMapGenerator[0].Name != "weir-settings" || !slices.Equal(k.ConfigMapGenerator[0].Files, []string{"weir.yaml"}) {
			t.Errorf("%s generates the settings from %v, want weir-settings from weir.yaml", folder, k.ConfigMapGenerator)
		}
		var names []string
		for _, m := range all {
			if m.Kind == "Deployment" {
				names = append(names, m.Metadata.Name)
				checkPod(t, m, cfg, file)
			}
		}
		if k.Images != nil {
			t.Errorf("%s replaces the images %v: only an overlay does, by the whole name in the manifests", folder, k.Images)
		}
		if !slices.Equal(names, deployments) {
			t.Errorf("%s has the deployments %v, want %v", folder, names, deployments)
		}
	}
}

// The same holds for the rendered Helm chart, as committed by the chart's tests.
func TestHelmRunsWeir(t *testing.T) {
	for name, workloads := range map[string][]string{
		"default": {"Deployment/weir-api", "Deployment/weir-processor"},
		"static":  {"StatefulSet/weir-processor"},
	} {
		file := filepath.Join(t.TempDir(), "weir.yaml")
		var found []string
		var cfg *config.Config
		for _, m := range documents(t, "../../deploy/helm/testdata/"+name+".yaml") {
			switch m.Kind {
			case "ConfigMap":
				if err := os.WriteFile(file, []byte(m.Data["weir.yaml"]), 0o600); err != nil {
					t.Fatal(err)
				}
				var err error
				if cfg, err = config.Load(file, nil); err != nil {
					t.Fatal(err)
				}
			case "Deployment", "StatefulSet":
				found = append(found, m.Kind+"/"+m.Metadata.Name)
				checkPod(t, m, cfg, file)
				if m.Metadata.Name == "weir-api" {
					checkHosts(t, m.Spec.Template.Spec.Containers[0], m.Metadata.Name)
				}
			}
		}
		if !slices.Equal(found, workloads) {
			t.Errorf("%s renders %v, want %v", name, found, workloads)
		}
	}
}

func checkPod(t *testing.T, m manifest, cfg *config.Config, file string) {
	t.Helper()
	spec, found := m.Spec.Template.Spec, false
	for _, c := range append(spec.InitContainers, spec.Containers...) {
		if image, _, _ := strings.Cut(c.Image, ":"); image != "ghcr.io/weir-stream/weir" {
			continue
		}
		found = true
		root := newRootCommand()
		cmd, rest, err := root.Find(c.Args)
		if err != nil || cmd.Name() != "run" || cmd.ParseFlags(rest) != nil {
			t.Fatalf("%s: weir run does not accept %v", m.Metadata.Name, c.Args)
		}
		given, _ := cmd.Flags().GetStringSlice("roles")
		roles, err := node.ParseRoles(given)
		if err != nil {
			t.Error(err)
		}
		var path string
		for _, variable := range c.Env {
			if variable.Name == config.FileVariable {
				path = variable.Value
			}
		}
		if len(c.VolumeMounts) == 0 || path != c.VolumeMounts[0].Path+"/weir.yaml" || spec.Volumes[0].Name != c.VolumeMounts[0].Name ||
			spec.Volumes[0].ConfigMap.Name != "weir-settings" {
			t.Errorf("%s: weir-settings is not mounted at %s", m.Metadata.Name, path)
		}
		if _, port, _ := net.SplitHostPort(cfg.API.Listen); len(c.Ports) != 1 || strconv.Itoa(c.Ports[0].Port) != port ||
			m.Spec.Template.Metadata.Annotations["prometheus.io/port"] != port {
			t.Errorf("%s: ports %v, but %s listens on %s", m.Metadata.Name, c.Ports, file, cfg.API.Listen)
		}
		probes := map[string]probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe}
		if spec.InitContainers != nil { // a sidecar's pod is ready when the rule engine is
			probes = map[string]probe{"/healthz": c.StartupProbe}
		}
		for path, p := range probes {
			if p.Get == nil || p.Get.Path != path || p.Get.Port != c.Ports[0].Name {
				t.Errorf("%s: the probe of %s is %+v, want that path on the port of the API", m.Metadata.Name, path, p.Get)
			}
		}
		stop := cfg.API.ShutdownTimeout + time.Duration(c.Lifecycle.PreStop.Sleep.Seconds)*time.Second
		if roles.Processor {
			stop = max(stop, cfg.Processor.ShutdownTimeout)
		}
		if grace := time.Duration(spec.Grace) * time.Second; grace < stop+5*time.Second {
			t.Errorf("%s: it is killed after %v, but may take %v to stop", m.Metadata.Name, grace, stop)
		}
		if spec.ServiceLinks == nil || *spec.ServiceLinks {
			t.Errorf("%s: enableServiceLinks is not false", m.Metadata.Name)
		}
	}
	if !found {
		t.Errorf("%s does not run weir", m.Metadata.Name)
	}
}

// References to deployments and pods name existing ones.
func TestKubernetesReferences(t *testing.T) {
	_, all := manifests(t, kubernetes+"overlays/keda")
	pods, seen := map[string]manifest{}, map[string]int{}
	for _, m := range all {
		if m.Kind == "Deployment" {
			pods[m.Metadata.Name] = m
			if name := m.Metadata.Name; m.Spec.Selector.MatchLabels["app.kubernetes.io/name"] != name ||
				m.Spec.Template.Metadata.Labels["app.kubernetes.io/name"] != name {
				t.Errorf("%s does not select its own pods", name)
			}
		}
	}
	for _, m := range all {
		seen[m.Kind]++
		var of string
		switch m.Kind {
		case "Deployment":
			continue
		case "PodDisruptionBudget":
			of = m.Spec.Selector.MatchLabels["app.kubernetes.io/name"]
		case "NetworkPolicy":
			of = m.Spec.PodSelector.MatchLabels["app.kubernetes.io/name"]
		case "Service":
			of = m.Spec.Selector.Name
			if port := pods[of].Spec.Template.Spec.Containers[0].Ports[0].Name; m.Spec.Ports[0].TargetPort != port {
				t.Errorf("the service's target port is %s, want %s", m.Spec.Ports[0].TargetPort, port)
			}
			checkHosts(t, pods[of].Spec.Template.Spec.Containers[0], m.Metadata.Name)
		case "HorizontalPodAutoscaler":
			of = m.Spec.ScaleTargetRef.Name
			if pods[of].Spec.Replicas != nil {
				t.Errorf("%s has both a number of replicas and an autoscaler", of)
			}
		case "ScaledObject":
			of = m.Spec.ScaleTargetRef.Name
		}
		if _, ok := pods[of]; !ok {
			t.Errorf("%s %s refers to %q, which is not a deployment", m.Kind, m.Metadata.Name, of)
		}
	}
	for kind, n := range map[string]int{
		"Deployment": 2, "PodDisruptionBudget": 2, "NetworkPolicy": 2, "Service": 1, "HorizontalPodAutoscaler": 1, "ScaledObject": 1,
	} {
		if seen[kind] != n {
			t.Errorf("found %d of kind %s, want %d", seen[kind], kind, n)
		}
	}
}

// checkHosts sends requests to a container under all names that a Service has.
func checkHosts(t *testing.T, c container, service string) {
	t.Helper()
	for _, variable := range c.Env {
		if strings.HasPrefix(variable.Name, "WEIR_") {
			t.Setenv(variable.Name, strings.ReplaceAll(variable.Value, "$(POD_NAMESPACE)", "fraud"))
		}
	}
	cfg, err := config.Load(kubernetes+"base/weir.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{service, service + ".fraud", service + ".fraud.svc", service + ".fraud.svc.cluster.local"} {
		if !slices.Contains(cfg.API.Hosts, name) {
			t.Errorf("requests to %s are refused: the allowed names are %q", name, cfg.API.Hosts)
		}
	}
}

// The autoscaler uses the lag of the group on all topics that the processors read.
func TestKubernetesScalesByTheLag(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load(kubernetes+"base/weir.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	registry, err := definition.Load(shipped)
	if err != nil {
		t.Fatal(err)
	}
	_, all := manifests(t, kubernetes+"overlays/keda")
	var topics []string
	for _, m := range all {
		for _, trigger := range m.Spec.Triggers {
			topics = append(topics, trigger.Metadata["topic"])
			if trigger.Metadata["consumerGroup"] != cfg.Kafka.Group || trigger.Metadata["bootstrapServers"] != strings.Join(cfg.Kafka.Brokers, ",") {
				t.Errorf("the trigger watches %v, want the group and brokers of the settings", trigger.Metadata)
			}
		}
	}
	slices.Sort(topics)
	if !slices.Equal(topics, registry.Topics()) {
		t.Errorf("the triggers watch the topics %v, want %v", topics, registry.Topics())
	}
}

// Compose creates the topics of the shipped definitions, those of tables compacted.
func TestComposeCreatesTopics(t *testing.T) {
	t.Parallel()
	registry, err := definition.Load(shipped)
	if err != nil {
		t.Fatal(err)
	}
	file := strings.ReplaceAll(read(t, "../../docker-compose.yml"), "\\\n", " ")
	var made [2][]string // others and compacted ones
	for _, loop := range regexp.MustCompile(`(?s)for topic in ([\w. -]+); do.*?--create (.*?)done`).FindAllStringSubmatch(file, -1) {
		i := 0
		if strings.Contains(loop[2], "--config cleanup.policy=compact") {
			i = 1
		}
		made[i] = append(made[i], strings.Fields(loop[1])...)
	}
	slices.Sort(made[0])
	want := [2][]string{append(registry.Topics(), config.Default().Kafka.DeadLetterTopic), features.TableTopics(registry.Tables)}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The image holds settings and definitions where its command expects them, and weir accepts the
// arguments of its command and health check.
func TestImage(t *testing.T) {
	t.Parallel()
	file := read(t, "../../Dockerfile")
	for _, want := range []string{
		"COPY config/features /etc/weir/features\n", "COPY config/image.yaml /etc/weir/weir.yaml\n", "EXPOSE 8080\n",
		"USER 65532:65532\n", "GOOS=$TARGETOS GOARCH=$TARGETARCH",
	} {
		if !strings.Contains(file, want) {
			t.Errorf("the Dockerfile does not contain %q", want)
		}
	}
	if found := regexp.MustCompile(`WEIR_[A-Z]\w*=\S*`).FindAllString(file, -1); !slices.Equal(found, []string{"WEIR_CONFIG=/etc/weir/weir.yaml"}) {
		t.Errorf("the image sets %q: it must name its file of settings, and other variables would override one that is mounted", found)
	}
	want := config.Default()
	want.Features, want.API.Listen = []string{"/etc/weir/features"}, ":8080"
	got, err := config.Load("../../config/image.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the image's settings (-want +got):\n%s", diff)
	}
	for _, line := range strings.Split(file, "\n") {
		_, list, ok := strings.Cut(line, `CMD ["`)
		if !ok {
			continue
		}
		args := strings.Split(strings.TrimSuffix(strings.TrimPrefix(list, `/weir", "`), `"]`), `", "`)
		if cmd, rest, err := newRootCommand().Find(args); err != nil || !cmd.Runnable() || cmd.ParseFlags(rest) != nil {
			t.Errorf("weir does not accept %q", args)
		}
	}
}
