package node

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/weir-stream/weir/cmd/weir/connect"
	redisconn "github.com/weir-stream/weir/cmd/weir/connect/redis"
	"github.com/weir-stream/weir/config"
)

// parts describes the parts of a process, by name.
type parts map[string]string

// changed returns the names of the parts that differ, sorted.
func (p parts) changed(other parts) (names []string) {
	if p[failure] != other[failure] {
		return []string{failure}
	}
	for name := range p {
		if other[name] != p[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// failure is the only part if the settings are refused: the error.
const failure = "error"

// partsOf describes the process that the settings make, or only the error.
func partsOf(t *testing.T, settings map[string]any) parts {
	t.Helper()
	cfg := loaded(t, settings)
	w, err := newWiring(cfg, connect.OpenStore, Roles{Processor: true, API: true}, Build{Release: "1.2.3"}, slog.New(slog.DiscardHandler))
	if err != nil {
		return parts{failure: err.Error()} // for example for a key that does not fit its certificate
	}
	defer func() {
		if err := w.store.Close(); err != nil {
			t.Error(err)
		}
	}()
	p := parts{}
	seen := map[uintptr]bool{} // so that what several parts share is described once
	for wiring, i := reflect.ValueOf(*w), 0; i < wiring.NumField(); i++ {
		p[wiring.Type().Field(i).Name] = described(seen, wiring.Field(i))
	}
	p["TLS of the API"] = described(seen, reflect.ValueOf(w.access.tls()))
	p["log"] = logOf(cfg)
	p["kafka"] += firstOfLogin(t, w.kafka.Transport.(*kafka.Transport).SASL)
	p["registry"] += sentToRegistry(w.registry.Client)
	if store, ok := w.store.(*redisconn.Deployment); ok {
		p["client of Redis"] = fmt.Sprintf("%T", store.Client)
		p["options of Redis"] = redisOptions(t, cfg)
		p["client of the replicas"] = replicasClient(t, cfg, store.Replicas)
	}
	return p
}

// loaded loads settings from a file.
func loaded(t *testing.T, settings map[string]any) *config.Config {
	t.Helper()
	var text strings.Builder
	for key, value := range settings {
		if list, ok := value.([]string); ok {
			value = "[" + strings.Join(list, ", ") + "]"
		}
		fmt.Fprintf(&text, "%s: %v\n", key, value)
	}
	file := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// logOf is how many lines of two levels a log has, and their format.
func logOf(cfg *config.Config) string {
	var out bytes.Buffer
	log, _ := NewLogger(&out, cfg.Log)
	log.Debug("debug")
	log.Info("info")
	return fmt.Sprint(strings.Count(out.String(), "\n"), strings.HasPrefix(out.String(), "{"))
}

// firstOfLogin returns the first message of a login at a broker without its random part, or the
// error.
func firstOfLogin(t *testing.T, login sasl.Mechanism) string {
	if login == nil {
		return ""
	}
	_, message, err := login.Start(t.Context())
	text, _, _ := strings.Cut(string(message), ",r=")
	return fmt.Sprint(login.Name(), text, err)
}

// sentToRegistry returns what a client sends to the Schema Registry, and its TLS.
func sentToRegistry(client *sr.Client) string {
	if client == nil {
		return ""
	}
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	err := client.OptValue(sr.PreReq).(func(*http.Request) error)(request)
	encryption := client.OptValue(sr.HTTPClient).(*http.Client).Transport.(*http.Transport).TLSClientConfig
	return fmt.Sprint(err, request.Header, described(map[uintptr]bool{}, reflect.ValueOf(encryption)))
}

// redisOptions describes the options of all clients of Redis, and their login.
func redisOptions(t *testing.T, cfg *config.Config) string {
	options, err := redisconn.Options(cfg)
	if err != nil {
		t.Fatal(err)
	}
	text := described(map[uintptr]bool{}, reflect.ValueOf(*options))
	if login := options.CredentialsProviderContext; login != nil {
		_, password, err := login(t.Context())
		token, parsing := url.ParseQuery(password)
		token.Del("X-Amz-Date")
		token.Del("X-Amz-Signature")
		text += fmt.Sprint(token, err, parsing)
	}
	if cfg.Redis.Azure.Identity != "" {
		tokens, err := cfg.Redis.Tokens()
		if err != nil {
			t.Fatal(err)
		}
		token, err := tokens(t.Context())
		text += fmt.Sprint(token.Password, err)
	}
	return text
}

// replicasClient describes what is special to the client of the replicas.
func replicasClient(t *testing.T, cfg *config.Config, client *redis.ClusterClient) string {
	if client == nil {
		return ""
	}
	options := client.Options()
	text := fmt.Sprint(options.OnConnect != nil, options.ClusterSlots != nil)
	if cfg.Redis.Mode == "single" { // with Sentinels, this would ask them
		slots, err := options.ClusterSlots(t.Context())
		text += fmt.Sprint(slots, err)
	}
	return text
}

// described returns the content of a value as text.
func described(seen map[uintptr]bool, v reflect.Value) string {
	d := &describing{seen: seen}
	d.add(v)
	return d.String()
}

// describing writes the content of values, through unexported fields and pointers. It leaves out
// the settings themselves, and clients and loggers.
type describing struct {
	strings.Builder
	seen map[uintptr]bool
}

var opaque = []reflect.Type{
	reflect.TypeFor[config.API](), reflect.TypeFor[redis.Client](), reflect.TypeFor[redis.ClusterClient](), reflect.TypeFor[slog.Logger](),
}

func (d *describing) add(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || d.seen[v.Pointer()] || slices.Contains(opaque, v.Type().Elem()) {
			d.WriteString("- ")
			return
		}
		d.seen[v.Pointer()] = true
		d.add(v.Elem())
	case reflect.Interface:
		if !v.IsNil() {
			d.WriteString(v.Elem().Type().String() + " ")
			d.add(v.Elem())
		}
	case reflect.Struct:
		if slices.Contains(opaque, v.Type()) {
			return
		}
		for i := range v.NumField() {
			d.WriteString(v.Type().Field(i).Name + ": ")
			d.add(v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			d.add(v.Index(i))
		}
	case reflect.Map:
		var entries []string
		for _, key := range v.MapKeys() {
			entry := &describing{seen: d.seen}
			entry.add(key)
			entry.add(v.MapIndex(key))
			entries = append(entries, entry.String())
		}
		slices.Sort(entries)
		d.WriteString(strings.Join(entries, ""))
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		fmt.Fprintf(d, "%v ", v.IsNil())
	default:
		fmt.Fprintf(d, "%v ", v)
	}
}
