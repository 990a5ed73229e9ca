package node

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/weir-stream/weir/cmd/weir/connect"
	redisconn "github.com/weir-stream/weir/cmd/weir/connect/redis"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/testkit/auth"
)

// Every setting must reach some part of the process: any value other than the default changes what
// a process is made of.
func TestEverySettingIsWired(t *testing.T) {
	values := otherValues(t)
	for _, key := range settingKeys(reflect.TypeFor[config.Config](), "") {
		t.Run(key, func(t *testing.T) {
			given := values[key]
			if given.value == nil {
				given.value = otherThan(t, key)
			}
			without := made(t, given.with)
			set := maps.Clone(given.with)
			if set == nil {
				set = map[string]any{}
			}
			set[key] = given.value
			if made(t, given.with) != without {
				t.Fatal("the same settings make different parts: the comparison would say nothing")
			}
			if made(t, set) == without {
				t.Errorf("%s changes no part of a process: wire it in wiring.go", key)
			}
		})
	}
}

// setting is a value other than the default, and further settings that it needs.
type setting struct {
	value any
	with  map[string]any
}

// otherValues returns the values that cannot be derived from the default alone.
func otherValues(t *testing.T) map[string]setting {
	authority := auth.NewAuthority(t)
	cert, key := authority.Issue("weir")
	other, otherKey := authority.Issue("other")
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secret := file("secret", "a secret of more than sixteen bytes\n")
	login := map[string]any{"kafka.sasl.mechanism": "plain", "kafka.sasl.username": "weir"}
	issuer := tokenServer(t)
	grant := map[string]any{"kafka.sasl.mechanism": "oauthbearer", "kafka.sasl.oauth.token_url": issuer.URL, "kafka.sasl.oauth.client_id": "weir"}
	private := httptest.NewTLSServer(issuer.Config.Handler)
	t.Cleanup(private.Close)
	privately := map[string]any{"kafka.sasl.mechanism": "oauthbearer", "kafka.sasl.oauth.token_url": private.URL, "kafka.sasl.oauth.client_id": "weir"}
	privateCA := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: private.Certificate().Raw}))
	token := map[string]any{"kafka.sasl.mechanism": "oauthbearer", "kafka.sasl.oauth.token_file": file("token", "a.b.c")}
	kerberos := map[string]any{"kafka.sasl.mechanism": "gssapi", "kafka.sasl.username": "weir", "kafka.sasl.kerberos.keytab": "/keytab"}
	registry := map[string]any{"registry.url": "http://registry:8081", "registry.username": "weir", "registry.password": "secret"}
	sentinel := map[string]any{"redis.mode": "sentinel", "redis.master_name": "main"}
	auth.UseAWS(t, "eu-west-1")
	cache := map[string]any{"redis.elasticache.cache": "payments", "redis.username": "weir", "redis.tls.enabled": true}
	auth.NewEntra(t)
	entra := map[string]any{"redis.username": "weir", "redis.tls.enabled": true}
	azure := map[string]any{"redis.azure.identity": "managed", "redis.username": "weir", "redis.tls.enabled": true}
	replica := map[string]any{"redis.read_from": "replica", "redis.replicas": []string{"replica:6379"}}
	oidc := map[string]any{"api.oidc.issuer": "https://issuer.example.com", "api.oidc.audience": "weir"}
	encrypted := map[string]any{"api.tls.cert": cert, "api.tls.key": key}
	values := map[string]setting{
		"features":                            {value: []string{"other.yaml"}},
		"kafka.brokers":                       {value: []string{"broker:9092"}},
		"kafka.start":                         {value: "latest"},
		"kafka.isolation":                     {value: "read_uncommitted"},
		"kafka.on_data_loss":                  {value: "continue"},
		"kafka.on_broken_batch":               {value: "set_aside"},
		"kafka.max_record_bytes":              {value: 1 << 19},
		"kafka.topic_partitions":              {value: 7},
		"kafka.topic_replication":             {value: 3},
		"kafka.sasl.mechanism":                {value: "scram-sha-512", with: login},
		"kafka.sasl.username":                 {value: "somebody", with: map[string]any{"kafka.sasl.mechanism": "plain", "kafka.sasl.username": "weir", "kafka.sasl.password": "secret"}},
		"kafka.sasl.password":                 {value: "secret", with: login},
		"kafka.sasl.password_file":            {value: secret, with: login},
		"kafka.sasl.oauth.token_url":          {value: issuer.URL + "/other", with: grant},
		"kafka.sasl.oauth.client_id":          {value: "other", with: grant},
		"kafka.sasl.oauth.client_secret":      {value: "other", with: grant},
		"kafka.sasl.oauth.client_secret_file": {value: secret, with: grant},
		"kafka.sasl.oauth.scopes":             {value: []string{"events"}, with: grant},
		"kafka.sasl.oauth.ca":                 {value: file("ca.pem", privateCA), with: privately},
		"kafka.sasl.oauth.token_file":         {value: file("other", "d.e.f"), with: token},
		"kafka.sasl.oauth.extensions":         {value: []string{"logicalCluster=lkc-1"}, with: token},
		"kafka.sasl.kerberos.service":         {value: "stream", with: kerberos},
		"kafka.sasl.kerberos.realm":           {value: "OTHER", with: kerberos},
		"kafka.sasl.kerberos.keytab":          {value: "/other", with: kerberos},
		"kafka.sasl.kerberos.config":          {value: "/other", with: kerberos},
		"registry.url":                        {value: "http://registry:8081"},
		"registry.username":                   {value: "somebody", with: registry},
		"registry.password":                   {value: "other", with: registry},
		"registry.token":                      {value: "other", with: map[string]any{"registry.url": "http://registry:8081"}},
		"registry.token_file":                 {value: secret, with: map[string]any{"registry.url": "http://registry:8081"}},
		"redis.mode":                          {value: "cluster"},
		"redis.addresses":                     {value: []string{"redis:6379"}},
		"redis.master_name":                   {value: "other", with: sentinel},
		"redis.read_from":                     {value: "replica", with: map[string]any{"redis.mode": "cluster"}},
		"redis.replicas":                      {value: []string{"other:6379"}, with: replica},
		"redis.max_staleness":                 {value: "3s", with: replica},
		"redis.password_file":                 {value: secret},
		"redis.elasticache.cache":             {value: "other", with: cache},
		"redis.elasticache.region":            {value: "us-east-1", with: cache},
		"redis.elasticache.serverless":        {value: true, with: cache},
		"redis.azure.identity":                {value: "managed", with: entra},
		"redis.azure.client_id":               {value: "other", with: azure},
		"redis.sentinel_username":             {value: "weir", with: sentinel},
		"redis.sentinel_password":             {value: "secret", with: sentinel},
		"redis.sentinel_password_file":        {value: secret, with: sentinel},
		"store.hash_entities.key_file":        {value: secret},
		"api.tokens_file":                     {value: file("tokens", strings.Repeat("t", 40)+"\n")},
		"api.oidc.issuer":                     {value: "https://other.example.com", with: oidc},
		"api.oidc.audience":                   {value: "other", with: oidc},
		"api.oidc.scope_claim":                {value: "scp", with: oidc},
		"api.oidc.scope_prefix":               {value: "weir.", with: oidc},
		"api.oidc.ca":                         {value: authority.CA, with: oidc},
		"api.hosts":                           {value: []string{"weir.example.com"}},
		"api.listen":                          {value: "127.0.0.1:7777"},
		"api.tls.cert":                        {value: other, with: encrypted},
		"api.tls.key":                         {value: otherKey, with: encrypted},
		"api.tls.client_ca":                   {value: authority.CA, with: encrypted},
		"log.level":                           {value: "debug"},
		"log.format":                          {value: "json"},
		"backfill.mode":                       {value: "off"},
		"backfill.rate":                       {value: 0.25},
		"profiles.listen":                     {value: "127.0.0.1:7778"},
		"tracing.endpoint":                    {value: "http://localhost:4318/v1/traces"},
		"tracing.sample_ratio":                {value: 0.5},
	}
	values["registry.password_file"] = setting{value: file("other", "another secret\n"), with: map[string]any{
		"registry.url": "http://registry:8081", "registry.username": "weir", "registry.password_file": secret,
	}}
	values["registry.tls.enabled"] = setting{value: true, with: registry}
	for _, server := range []string{"kafka", "redis", "registry"} {
		on := map[string]any{server + ".tls.enabled": true}
		if server == "registry" {
			on["registry.url"] = "https://registry:8081"
		}
		pair := map[string]any{server + ".tls.enabled": true, server + ".tls.cert": cert, server + ".tls.key": key}
		values[server+".tls.ca"] = setting{value: authority.CA, with: on}
		values[server+".tls.server_name"] = setting{value: "other", with: on}
		values[server+".tls.insecure_skip_verify"] = setting{value: true, with: on}
		values[server+".tls.cert"] = setting{value: other, with: pair}
		values[server+".tls.key"] = setting{value: otherKey, with: pair}
	}
	return values
}

// tokenServer issues tokens that contain the request's path and credentials.
func tokenServer(t *testing.T) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer"}`, r.URL.Path+r.Header.Get("Authorization")+r.FormValue("scope"))
	}))
	t.Cleanup(server.Close)
	return server
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

// settingKeys returns the keys of all settings.
func settingKeys(t reflect.Type, prefix string) (keys []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		key := prefix + f.Tag.Get("key")
		if f.Type.Kind() == reflect.Struct {
			keys = append(keys, settingKeys(f.Type, key+".")...)
		} else {
			keys = append(keys, key)
		}
	}
	return keys
}

// otherThan returns a value other than a setting's default.
func otherThan(t *testing.T, key string) any {
	v := reflect.ValueOf(*config.Default())
	for name := range strings.SplitSeq(key, ".") {
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("key") == name {
				v = v.Field(i)
				break
			}
		}
	}
	switch d, ok := v.Interface().(time.Duration); {
	case ok:
		return (d + time.Millisecond).String()
	case v.Kind() == reflect.Bool:
		return !v.Bool()
	case v.CanInt():
		return v.Int() + 1
	case v.Kind() == reflect.String:
		return v.String() + "other"
	}
	t.Fatalf("there is no other value of %s: name one in otherValues", key)
	return nil
}

// made describes the process that the settings make, or the error.
func made(t *testing.T, settings map[string]any) string {
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
	w, err := newWiring(cfg, connect.OpenStore, Roles{Processor: true, API: true}, Build{Release: "1.2.3"}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err.Error() // such as for a key that does not fit its certificate
	}
	defer func() {
		if err := w.store.Close(); err != nil {
			t.Error(err)
		}
	}()
	options, err := redisconn.Options(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	logger, _ := NewLogger(&log, cfg.Log)
	logger.Debug("debug")
	logger.Info("info")
	d := &describing{seen: map[uintptr]bool{}}
	d.add(reflect.ValueOf(*w))
	d.add(reflect.ValueOf(w.access.tls()))
	d.add(reflect.ValueOf(*options))
	fmt.Fprint(d, firstOfLogin(t, w.kafka.Transport.(*kafka.Transport).SASL))
	if client := w.registry.Client; client != nil {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		fmt.Fprint(d, client.OptValue(sr.PreReq).(func(*http.Request) error)(request), request.Header)
		d.add(reflect.ValueOf(client.OptValue(sr.HTTPClient).(*http.Client).Transport.(*http.Transport).TLSClientConfig))
	}
	if login := options.CredentialsProviderContext; login != nil {
		_, password, err := login(t.Context())
		token, parsing := url.ParseQuery(password)
		token.Del("X-Amz-Date")
		token.Del("X-Amz-Signature")
		fmt.Fprint(d, token, err, parsing)
	}
	if cfg.Redis.Azure.Identity != "" {
		tokens, err := cfg.Redis.Tokens()
		if err != nil {
			t.Fatal(err)
		}
		token, err := tokens(t.Context())
		fmt.Fprint(d, token.Password, err)
	}
	redis := w.store.(*redisconn.Deployment)
	fmt.Fprintf(d, "%T %T %d %v", redis.Client, redis.Replicas, strings.Count(log.String(), "\n"), strings.HasPrefix(log.String(), "{"))
	if redis.Replicas != nil {
		slots := redis.Replicas.Options().ClusterSlots
		if slots != nil {
			list, err := slots(t.Context())
			fmt.Fprint(d, list, err)
		}
	}
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
		if v.IsNil() || d.seen[v.Pointer()] {
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
