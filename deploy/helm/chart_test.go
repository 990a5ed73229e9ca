// Package helm_test renders the chart as Helm does. It reads the output with Kubernetes' own types,
// rejecting unknown fields, and with Weir's own settings and definitions.
//
// It is a module of its own: the dependencies on Helm and Kubernetes would triple Weir's go.mod.
package helm_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features/definition"
)

func TestLint(t *testing.T) {
	for _, message := range lint.All("weir", nil, "fraud", true).Messages {
		if message.Severity > support.InfoSev {
			t.Error(message)
		}
	}
}

// The rendered files are committed, so that a change shows in review; cmd/weir's tests read their
// settings, arguments and probes.
func TestRendered(t *testing.T) {
	for name, values := range map[string]string{
		"default": "",
		"all": `
image: {repository: registry.example.com/weir, digest: "sha256:` + strings.Repeat("0123456789abcdef", 4) + `"}
imagePullSecrets: [{name: registry}]
definitions: {files: {payments.yaml: "streams: {}\n"}}
mounts: [{name: redis-ca, mountPath: /etc/redis-ca, secret: redis-ca}]
serviceAccount: {annotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::1:role/weir"}}
settings:
  kafka: {brokers: [b-1:9096, b-2:9096], group: fraud, tls: {enabled: true}}
  redis: {mode: cluster, addresses: [redis:6379], tls: {enabled: true, ca: /etc/redis-ca/ca.crt}}
  api: {tls: {cert: /etc/weir-tls/tls.crt, key: /etc/weir-tls/tls.key}}
processor:
  keda: {enabled: true, topics: [payments], lagThreshold: 1000000, authenticationRef: kafka}
  nodeSelector: {pool: stream}
  tolerations: [{key: stream, operator: Exists}]
  priorityClassName: high
  env: [{name: GOGC, value: "200"}]
api: {autoscaling: {enabled: false}, hosts: [weir.example.com], podLabels: {team: risk}, podAnnotations: {team: risk}}
serviceMonitor: {enabled: true, labels: {release: prometheus}, bearerTokenSecret: {name: weir-tokens, key: metrics}, tlsConfig: {serverName: weir-api, ca: {secret: {name: weir-tls, key: ca.crt}}}}
`,
		"static": "{processor: {staticMembership: true, replicas: 3}, api: {enabled: false}, networkPolicy: {enabled: false}, podDisruptionBudget: {enabled: false}}",
	} {
		t.Run(name, func(t *testing.T) {
			documents := mustRender(t, values)
			known(t, documents)
			var all strings.Builder
			for _, key := range slices.Sorted(maps.Keys(documents)) {
				if key != "NOTES.txt" {
					all.WriteString("---\n" + strings.TrimSpace(documents[key]) + "\n")
				}
			}
			golden(t, "testdata/"+name+".yaml", all.String())
			golden(t, "testdata/"+name+".txt", documents["NOTES.txt"])
		})
	}
}

// Weir accepts the settings and definitions that the chart writes.
func TestSettingsAndDefinitions(t *testing.T) {
	files := map[string]any{
		"refunds.yml":    "streams: {refund: {topic: refunds, timestamp: at, format: {type: avro, framing: none, schema: refund.v1.avsc}, fields: {user: string}}}\n",
		"refund.v1.avsc": `{"type": "record", "name": "Refund", "fields": [{"name": "at", "type": "long"}, {"name": "user", "type": "string"}]}`,
	}
	for name, text := range shipped(t) {
		files[name] = text
	}
	values, err := yaml.Marshal(map[string]any{
		"settings":    map[string]any{"namespace": "fraud", "shards": 64, "kafka": map[string]any{"fetch": map[string]any{"max_bytes": "8MiB"}}},
		"definitions": map[string]any{"files": files},
	})
	if err != nil {
		t.Fatal(err)
	}
	documents := mustRender(t, string(values))
	dir := t.TempDir()
	settings := filepath.Join(dir, "weir.yaml")
	write(t, settings, decode[core.ConfigMap](t, documents, "ConfigMap/weir-settings").Data["weir.yaml"])
	cfg, err := config.Load(settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Namespace != "fraud" || cfg.Shards != 64 || cfg.API.Listen != ":8080" || cfg.Kafka.Fetch.MaxBytes != 8<<20 || !slices.Equal(cfg.Kafka.Brokers, []string{"kafka:9092"}) {
		t.Errorf("unexpected settings %+v", cfg)
	}
	if !slices.Equal(cfg.Features, []string{"/etc/weir/features"}) {
		t.Errorf("definitions are read from %v, want /etc/weir/features", cfg.Features)
	}
	mounted := decode[core.ConfigMap](t, documents, "ConfigMap/weir-definitions").Data
	features := filepath.Join(dir, "features")
	if err := os.Mkdir(features, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range mounted {
		write(t, filepath.Join(features, name), text)
	}
	if r, err := definition.Load(features); err != nil || len(r.Topics()) != 3 || len(r.Tables) != 2 {
		t.Errorf("the chart's definitions: %v, %v", mounted, err)
	}
}

// shipped returns the definitions that come with Weir, by the names of their files.
func shipped(t *testing.T) map[string]string {
	paths, err := filepath.Glob("../../config/features/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	files := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = string(text)
	}
	return files
}

// Nobody is answered without a token unless the values say so; metrics are for whom the network policy lets in.
func TestTokensAreRequired(t *testing.T) {
	load := func(values string) *config.Config {
		path := filepath.Join(t.TempDir(), "weir.yaml")
		write(t, path, decode[core.ConfigMap](t, mustRender(t, values), "ConfigMap/weir-settings").Data["weir.yaml"])
		cfg, err := config.Load(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	for _, values := range []string{"", "settings: {api: {tls: {cert: /tls/tls.crt, key: /tls/tls.key}}}"} {
		if api := load(values).API; api.TokensFile != "/run/secrets/weir/tokens" || !api.OpenMetrics {
			t.Errorf("%q: tokens are read from %q, metrics are open: %t", values, api.TokensFile, api.OpenMetrics)
		}
	}
	const open = `settings: {api: {tokens_file: ""}}`
	if api := load(open).API; api.TokensFile != "" {
		t.Errorf("tokens are read from %q, want none", api.TokensFile)
	}
	for values, want := range map[string]bool{"": true, open: false} {
		if got := strings.Contains(mustRender(t, values)["NOTES.txt"], "--from-literal=tokens="); got != want {
			t.Errorf("%q: the notes say how to make a token: %t", values, got)
		}
	}
}

// New settings replace the pods; new definitions do not, because running pods reload them.
func TestNewSettingsReplacePods(t *testing.T) {
	pod := func(values string) apps.DeploymentSpec {
		return decode[apps.Deployment](t, mustRender(t, values), "Deployment/weir-processor").Spec
	}
	hash := func(values string) string { return pod(values).Template.Annotations["weir/settings"] }
	before := hash(`definitions: {files: {a.yaml: "streams: {}"}}`)
	if got := hash(`definitions: {files: {a.yaml: "features: {}"}}`); got != before {
		t.Error("changed definitions replace the pods, want them to be read")
	}
	if got := hash(`{definitions: {files: {a.yaml: "streams: {}"}}, settings: {namespace: other}}`); got == before {
		t.Error("changed settings do not replace the pods")
	}
	for _, mount := range pod(`definitions: {existingConfigMap: risk}`).Template.Spec.Containers[0].VolumeMounts {
		if mount.SubPath != "" {
			t.Errorf("%s is mounted as a file, which does not follow its ConfigMap", mount.MountPath)
		}
	}
}

// An invalid value is refused by name before anything is applied.
func TestRefused(t *testing.T) {
	for values, want := range map[string]string{
		"settings: {features: [x]}":                                   "settings.features is the chart's own",
		"settings: {api: {listen: \":9\"}}":                           "settings.api.listen is the chart's own",
		"settings: {api: {hosts: [x]}}":                               "settings.api.hosts is the chart's own",
		"definitions: {files: {a.json: x}}":                           `"a.json" is not a name such as payments.yaml`,
		"definitions: {files: {a.yaml: {streams: {}}}}":               "/definitions/files/a.yaml",
		"processor: {staticMembership: true, keda: {enabled: true}}":  "processor.staticMembership and processor.keda exclude each other",
		"mounts: [{name: a, mountPath: /a}]":                          "/mounts/0",
		"mounts: [{name: a, mountPath: /a, secret: a, configMap: a}]": "/mounts/0",
		"image: {tags: x}":                                            "tags",
		"replicas: 3":                                                 "replicas",
		"processor: {replicas: 0}":                                    "/processor/replicas",
		"settings: {kafka: {brokers: kafka:9092}}":                    "/settings/kafka/brokers",
		"api: {service: {type: ExternalName}}":                        "/api/service/type",
		"processor: {goMemLimit: 700Mi}":                              "/processor/goMemLimit",
		"podMonitor: {enabled: true}":                                 "podMonitor",
	} {
		if _, err := render(load(t, "weir"), values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", values, err, want)
		}
	}
}

// Every value has a description, and the schema knows all of them.
func TestValuesAreInTheSchema(t *testing.T) {
	c := load(t, "weir")
	var schema map[string]any
	if err := yaml.Unmarshal(c.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	var compare func(path string, values, schema map[string]any)
	compare = func(path string, values, schema map[string]any) {
		properties, _ := schema["properties"].(map[string]any)
		if path == "settings" || properties == nil {
			return
		}
		for name := range properties {
			if _, ok := values[name]; !ok && name != "global" && path != "processor.resources" && path != "api.resources" && path != "serviceMonitor.bearerTokenSecret" {
				t.Errorf("values.yaml lacks %s.%s", path, name)
			}
		}
		for name, value := range values {
			of, ok := properties[name].(map[string]any)
			if !ok {
				t.Errorf("the schema lacks %s.%s", path, name)
			} else if below, ok := value.(map[string]any); ok {
				compare(strings.TrimPrefix(path+"."+name, "."), below, of)
			}
		}
	}
	compare("", c.Values, schema)
}

// Each ServiceMonitor selects one Service, by a port that the Service has, and takes the job's name
// from one of its labels. Every pod is found by one of both ways, never by two.
func TestServiceMonitors(t *testing.T) {
	for _, static := range []string{"false", "true"} {
		documents := mustRender(t, "{serviceMonitor: {enabled: true}, processor: {staticMembership: "+static+"}}")
		for _, name := range []string{"weir-api", "weir-processor"} {
			monitor := decode[monitoring.ServiceMonitor](t, documents, "ServiceMonitor/"+name)
			var selected []string
			for key := range documents {
				if !strings.HasPrefix(key, "Service/") {
					continue
				}
				service := decode[core.Service](t, documents, key)
				if labels.SelectorFromSet(monitor.Spec.Selector.MatchLabels).Matches(labels.Set(service.Labels)) {
					selected = append(selected, key)
				}
			}
			if !slices.Equal(selected, []string{"Service/" + name}) {
				t.Errorf("%s selects %v, want its own service", name, selected)
			}
			service := decode[core.Service](t, documents, "Service/"+name)
			if service.Labels[monitor.Spec.JobLabel] != "weir" || service.Spec.Ports[0].Name != monitor.Spec.Endpoints[0].Port {
				t.Errorf("%s: the job is %q, the port %q; want weir and the monitor's port", name, service.Labels[monitor.Spec.JobLabel], service.Spec.Ports[0].Name)
			}
		}
	}
	for values, want := range map[string]string{"": "http", "settings: {api: {tls: {cert: /c, key: /k}}}": "https"} {
		pod := decode[apps.Deployment](t, mustRender(t, values), "Deployment/weir-processor").Spec.Template
		if got := pod.Annotations["prometheus.io/scheme"]; got != want {
			t.Errorf("%q: prometheus.io/scheme is %q, want %q", values, got, want)
		}
	}
	for values, want := range map[string]string{"": "true", "serviceMonitor: {enabled: true}": "false"} {
		pod := decode[apps.Deployment](t, mustRender(t, values), "Deployment/weir-processor").Spec.Template
		if got := pod.Annotations["prometheus.io/scrape"]; got != want {
			t.Errorf("%q: prometheus.io/scrape is %q, want %q", values, got, want)
		}
	}
}

// A rule engine's chart adds the sidecar with two lines.
func TestSidecar(t *testing.T) {
	c := load(t, "examples/rule-engine")
	c.AddDependency(load(t, "weir")) // as `helm dependency build` does
	documents, err := render(c, "")
	if err != nil {
		t.Fatal(err)
	}
	known(t, documents)
	pod := decode[apps.Deployment](t, documents, "Deployment/weir").Spec.Template.Spec
	sidecar := pod.InitContainers[0]
	if sidecar.RestartPolicy == nil || *sidecar.RestartPolicy != core.ContainerRestartPolicyAlways {
		t.Error("the sidecar's restartPolicy is not Always, so it would run before the rule engine only")
	}
	for _, mount := range sidecar.VolumeMounts {
		if !slices.ContainsFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == mount.Name }) {
			t.Errorf("the pod has no volume %s", mount.Name)
		}
	}
	if got := slices.Sorted(maps.Keys(documents)); !slices.Equal(got, []string{"ConfigMap/weir-settings", "Deployment/weir", "NOTES.txt"}) {
		t.Errorf("the chart renders %v, want only the settings, the rule engine and the notes", got)
	}
}

// Whoever reaches a pod with a sidecar could ask it, so it requires a token. The rule engine beside it has one, with Helm and without.
func TestSidecarsRequireATokenThatTheRuleEngineHas(t *testing.T) {
	c := load(t, "examples/rule-engine")
	c.AddDependency(load(t, "weir"))
	helm, err := render(c, "{weir: {secretName: others}}")
	if err != nil {
		t.Fatal(err)
	}
	helm["weir.yaml"] = decode[core.ConfigMap](t, helm, "ConfigMap/weir-settings").Data["weir.yaml"]
	plain := map[string]string{}
	for key, file := range map[string]string{"Deployment/weir": "rule-engine.yaml", "weir.yaml": "weir.yaml"} {
		text, err := os.ReadFile("../kubernetes/examples/sidecar/" + file)
		if err != nil {
			t.Fatal(err)
		}
		plain[key] = string(text)
	}
	for secret, documents := range map[string]map[string]string{"others": helm, "weir-secrets": plain} {
		template := decode[apps.Deployment](t, documents, "Deployment/weir").Spec.Template
		path := filepath.Join(t.TempDir(), "weir.yaml")
		write(t, path, documents["weir.yaml"])
		cfg, err := config.Load(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if cfg.API.TokensFile != "/run/secrets/weir/tokens" || !cfg.API.OpenMetrics || template.Annotations["prometheus.io/scrape"] != "true" {
			t.Errorf("%s: tokens are read from %q, metrics are open: %t, annotations %v", secret, cfg.API.TokensFile, cfg.API.OpenMetrics, template.Annotations)
		}
		for _, v := range template.Spec.Volumes {
			if v.Name == "secrets" && v.Secret.SecretName != secret {
				t.Errorf("the tokens are of the Secret %s, want %s", v.Secret.SecretName, secret)
			}
		}
		env := template.Spec.Containers[0].Env
		i := slices.IndexFunc(env, func(e core.EnvVar) bool { return e.Name == "FEATURES_TOKEN" })
		if i < 0 || env[i].ValueFrom.SecretKeyRef.Name != secret || env[i].ValueFrom.SecretKeyRef.Key != "token" {
			t.Errorf("the rule engine has no token of the Secret %s: %v", secret, env)
		}
	}
}

// The chart accepts the values in the README's examples.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(examples) < 3 {
		t.Fatalf("the README has %d examples, want at least 3", len(examples))
	}
	for _, example := range examples {
		documents := mustRender(t, example[1])
		known(t, documents)
		dir, mounted := t.TempDir(), ""
		for _, mount := range decode[apps.Deployment](t, documents, "Deployment/weir-api").Spec.Template.Spec.Containers[0].VolumeMounts {
			if mount.Name == "secrets" {
				mounted = mount.MountPath + "/"
			}
		}
		settings := decode[core.ConfigMap](t, documents, "ConfigMap/weir-settings").Data["weir.yaml"]
		for _, secret := range regexp.MustCompile("_file: "+mounted+"(.*)").FindAllStringSubmatch(settings, -1) {
			write(t, filepath.Join(dir, secret[1]), "secret")
		}
		path := filepath.Join(dir, "weir.yaml")
		write(t, path, strings.ReplaceAll(settings, mounted, dir+"/"))
		if _, err := config.Load(path, nil); err != nil {
			t.Errorf("%s\n%v", example[1], err)
		}
	}
}
