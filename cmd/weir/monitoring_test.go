package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/cmd/weir/node"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/internal/testkit"
)

// described matches a metric's name and labels in the text of its description.
var described = regexp.MustCompile(`^Desc\{fqName: "([^"]+)".*variableLabels: \{([^}]*)\}\}$`)

// monitored starts a process whose metrics are looked at. Its Kafka and its store, of a type, need not exist.
func monitored(t *testing.T, store string) *node.Node {
	t.Helper()
	registry, err := definition.Load(shipped)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.API.Listen, cfg.Store.Type = "127.0.0.1:0", store
	n, err := node.New(cfg, registry, node.Roles{Processor: true, API: true}, node.Build{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if err := n.Run(ended); err != nil {
			t.Error(err)
		}
	})
	return n
}

// descriptions returns the descriptions of all metrics of a process.
func descriptions(t *testing.T) (texts []string) {
	t.Helper()
	for _, store := range []string{"redis", "ignite"} {
		n, all := monitored(t, store), make(chan *prometheus.Desc)
		go func() { n.Describe(all); close(all) }()
		for d := range all {
			if text := d.String(); !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// metricLabels returns the labels of all metrics of a process by name; a histogram has the names of
// its series.
func metricLabels(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{"up": nil}
	for _, d := range descriptions(t) {
		match := described.FindStringSubmatch(d)
		if match == nil {
			t.Fatalf("the description has no name: %s", d)
		}
		name, labels := match[1], strings.FieldsFunc(match[2], func(r rune) bool { return r == ',' || r == ' ' })
		found[name] = labels
		if strings.HasSuffix(name, "_total") {
			continue
		}
		// Descriptions do not show which metrics are histograms, so every metric but a counter gets
		// a histogram's series.
		found[name+"_bucket"] = append(slices.Clone(labels), "le")
		found[name+"_count"], found[name+"_sum"] = labels, labels
	}
	return found
}

// target lists the labels that Prometheus adds.
var target = []string{"job", "instance"}

// promQL lists the words of an expression that are not metrics.
var promQL = strings.Fields("sum count max max_over_time rate increase deriv histogram_quantile topk scalar vector time by on and or unless")

var (
	quotation = regexp.MustCompile(`"[^"]*"`)
	matchers  = regexp.MustCompile(`([a-z_]+)\{([^}]*)\}`)
	ranges    = regexp.MustCompile(`\[[^\]]*\]|\boffset \w+`)
	grouping  = regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`)
	word      = regexp.MustCompile(`[A-Za-z_]\w*`)
)

// checkExpression returns the metrics and labels of an expression that do not exist.
func checkExpression(expression string, known map[string][]string) (wrong []string) {
	text := ranges.ReplaceAllString(quotation.ReplaceAllString(expression, ""), "")
	used := func(metric, label string) {
		if labels, ok := known[metric]; ok && !slices.Contains(labels, label) && !slices.Contains(target, label) {
			wrong = append(wrong, metric+" has no label "+label)
		}
	}
	for _, m := range matchers.FindAllStringSubmatch(text, -1) {
		for _, label := range word.FindAllString(m[2], -1) {
			used(m[1], label)
		}
	}
	text = matchers.ReplaceAllString(text, "$1")
	labels := grouping.FindAllStringSubmatch(text, -1)
	for _, name := range word.FindAllString(grouping.ReplaceAllString(text, ""), -1) {
		if slices.Contains(promQL, name) {
			continue
		}
		if _, ok := known[name]; !ok {
			wrong = append(wrong, "there is no metric "+name)
			continue
		}
		for _, group := range labels {
			for _, label := range word.FindAllString(group[1], -1) {
				used(name, label)
			}
		}
	}
	return wrong
}

func TestCheckExpression(t *testing.T) {
	t.Parallel()
	known := map[string][]string{"weir_a_total": {"stream"}, "weir_b_bucket": {"le"}}
	for expression, want := range map[string]string{
		`sum by (stream) (rate(weir_a_total{stream=~"x y", job="weir"}[5m])) > 0`: "",
		`sum(weir_c_total)`:                      "there is no metric weir_c_total",
		`weir_a_total{topic="x"}`:                "weir_a_total has no label topic",
		`sum by (le, stream) (weir_b_bucket)`:    "weir_b_bucket has no label stream",
		`weir_a_total / on (x) avg(weir_a_tota)`: "weir_a_total has no label x; there is no metric avg; there is no metric weir_a_tota",
	} {
		if got := strings.Join(checkExpression(expression, known), "; "); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", expression, got, want)
		}
	}
}

// The dashboard and the alerts query only metrics that processes export.
func TestDashboardQueriesExistingMetrics(t *testing.T) {
	t.Parallel()
	var dashboard struct {
		Panels []struct {
			Type, Title string
			Targets     []struct{ Expr, RefID string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "../../deploy/grafana/dashboards/weir.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	known, asked := metricLabels(t), 0
	for _, panel := range dashboard.Panels {
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("%s shows nothing", panel.Title)
		}
		named := map[string]bool{}
		for _, target := range panel.Targets {
			asked++
			if named[target.RefID] {
				t.Errorf("%s: two queries are named %s, of which Grafana shows one", panel.Title, target.RefID)
			}
			named[target.RefID] = true
			for _, wrong := range checkExpression(target.Expr, known) {
				t.Errorf("%s: %s in %s", panel.Title, wrong, target.Expr)
			}
		}
	}
	if asked < 20 {
		t.Errorf("the dashboard queries only %d metrics", asked)
	}
	for name := range known {
		root := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if strings.HasPrefix(name, "weir_") && !strings.Contains(read(t, "../../deploy/grafana/dashboards/weir.json"), root) {
			t.Errorf("the dashboard does not show %s", root)
		}
	}
}

// alertRules reads the alerts.
func alertRules(t *testing.T) (list []alertRule) {
	t.Helper()
	var rules struct{ Groups []struct{ Rules []alertRule } }
	if err := yaml.Unmarshal([]byte(read(t, "../../deploy/prometheus/alerts.yml")), &rules); err != nil {
		t.Fatal(err)
	}
	return rules.Groups[0].Rules
}

type alertRule struct {
	Alert, Expr         string
	Labels, Annotations map[string]string
}

// An alert about a quantile fires at a bound of its histogram. Between two bounds Prometheus assumes an even spread, so
// it would fire at half of what it says, or at twice as much.
func TestAlertsFireAtBoundsOfHistograms(t *testing.T) {
	t.Parallel()
	base := "http://" + monitored(t, "redis").Addr().String()
	asked, err := http.Post(base+"/v1/query", "application/json", strings.NewReader("{"))
	if err != nil {
		t.Fatal(err)
	}
	asked.Body.Close()
	answer, err := http.Get(base + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	metrics, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	threshold, found := regexp.MustCompile(`^histogram_quantile\(.*(weir_\w+_bucket).*> ([0-9.]+)$`), 0
	for _, rule := range alertRules(t) {
		if match := threshold.FindStringSubmatch(rule.Expr); match != nil {
			found++
			if !regexp.MustCompile(match[1] + `\{[^}]*le="` + regexp.QuoteMeta(match[2]) + `"`).Match(metrics) {
				t.Errorf("%s fires at %s, which is no bound of %s", rule.Alert, match[2], match[1])
			}
		}
	}
	if found != 2 {
		t.Errorf("%d alerts are about quantiles, want 2", found)
	}
}

func TestAlertsQueryExistingMetrics(t *testing.T) {
	t.Parallel()
	rules := alertRules(t)
	known, runbook, tests := metricLabels(t), read(t, "../../docs/alerts.md"), read(t, "../../deploy/prometheus/alerts_test.yml")
	for _, rule := range rules {
		for _, wrong := range checkExpression(rule.Expr, known) {
			t.Errorf("%s: %s in %s", rule.Alert, wrong, rule.Expr)
		}
		want := "https://github.com/weir-stream/weir/blob/main/docs/alerts.md#" + strings.ToLower(rule.Alert)
		if rule.Annotations["runbook_url"] != want || rule.Annotations["summary"] == "" || rule.Labels["severity"] == "" {
			t.Errorf("%s: annotations %v, labels %v; want the runbook %s", rule.Alert, rule.Annotations, rule.Labels, want)
		}
		_, paragraph, found := strings.Cut(runbook, "\n### "+rule.Alert+"\n")
		paragraph, _, _ = strings.Cut(paragraph, "\n### ")
		for _, part := range []string{"**Means** ", "**See** ", "**Do** "} {
			if !found || !strings.Contains(paragraph, part) {
				t.Errorf("docs/alerts.md: %s lacks %s", rule.Alert, part)
			}
		}
		if !strings.Contains(tests, "alertname: "+rule.Alert+"\n        exp_alerts") {
			t.Errorf("no unit test lets %s fire", rule.Alert)
		}
	}
	if n := strings.Count(runbook, "\n### "); n != len(rules) || n < 10 {
		t.Errorf("there are %d alerts and %d paragraphs about them", len(rules), n)
	}
}

// The alerts fire when they should and only then, according to Prometheus' own test tool.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	promtool := testkit.Command(t, "promtool", "it, such as with `apt-get install prometheus`")
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		command := exec.CommandContext(t.Context(), promtool, args...)
		command.Dir = "../../deploy/prometheus"
		if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), "SUCCESS") {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// defaulted matches a value that Docker Compose takes from the environment, or else the default.
var defaulted = regexp.MustCompile(`^\$\{\w+:-(.*)\}$`)

// Docker Compose mounts existing files, sets known settings, and checks health only where an API
// runs.
func TestCompose(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Image       string
			Command     any
			Environment map[string]string
			Volumes     []string
			Healthcheck struct{ Disable bool }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "../../docker-compose.yml")), &compose); err != nil {
		t.Fatal(err)
	}
	mounted := 0
	for name, service := range compose.Services {
		for _, volume := range service.Volumes {
			if path, _, _ := strings.Cut(volume, ":"); strings.HasPrefix(path, "./") {
				mounted++
				if _, err := os.Stat("../../" + path); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		for variable, value := range service.Environment {
			if strings.HasPrefix(variable, "WEIR_") {
				t.Setenv(variable, defaulted.ReplaceAllString(value, "$1"))
			}
		}
		// The image's health check calls the API of `weir run`, its own command. It never succeeds
		// without an API.
		if service.Image == "weir" && (service.Command != nil) != service.Healthcheck.Disable {
			t.Errorf("%s runs %v; its health check is disabled: %t", name, service.Command, service.Healthcheck.Disable)
		}
	}
	if mounted != 4 {
		t.Errorf("%d files and folders are mounted, want 4", mounted)
	}
	cfg, err := config.Load("", nil)
	if err != nil || cfg.Kafka.Brokers[0] != "kafka:9092" || cfg.Redis.Addresses[0] != "redis:6379" {
		t.Errorf("the settings do not reach kafka:9092 and redis:6379: %+v, error %v", cfg, err)
	}
	if !slices.Contains(cfg.API.Hosts, "weir") {
		t.Errorf("requests of other containers to weir are refused: the allowed names are %q", cfg.API.Hosts)
	}
}
