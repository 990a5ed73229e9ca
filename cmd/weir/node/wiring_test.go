package node

import (
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/testkit/auth"
)

// Every setting must reach its places: any value other than the default changes a part of the
// process, and all of those that severalParts lists.
func TestEverySettingIsWired(t *testing.T) {
	values := otherValues(t)
	for _, key := range settingKeys(reflect.TypeFor[config.Config](), "") {
		t.Run(key, func(t *testing.T) {
			given := values[key]
			if given.value == nil {
				given.value = otherThan(t, key)
			}
			without := partsOf(t, given.with)
			set := maps.Clone(given.with)
			if set == nil {
				set = map[string]any{}
			}
			set[key] = given.value
			delete(set, given.unless)
			if changed := without.changed(partsOf(t, given.with)); changed != nil {
				t.Fatalf("the same settings make different parts: the comparison would prove nothing about %q", changed)
			}
			changed, want := without.changed(partsOf(t, set)), severalParts[key]
			switch {
			case want == nil && len(changed) != 1:
				t.Errorf("%s changes the parts %q of a process, want one: wire it in wiring.go, or list several in severalParts", key, changed)
			case want != nil && !slices.Equal(changed, want):
				t.Errorf("%s changes the parts %q of a process, want %q: wire it in wiring.go, or correct severalParts", key, changed, want)
			}
		})
	}
}

// severalParts are the settings that more than one part of a process depends on.
var severalParts = map[string][]string{
	"namespace":                  {"applying", "store"},
	"kafka.brokers":              {"applying", "kafka"},
	"kafka.dead_letter_topic":    {"applying", "topics"},
	"processor.shutdown_timeout": {"applying", "lastEvents"},
	"store.type":                 {"asking", "client of Redis", "options of Redis", "store"},
	"redis.mode":                 {"client of Redis", "client of the replicas", "options of Redis", "store"},
	"redis.addresses":            {"options of Redis", "store"},
	"redis.master_name":          {"options of Redis", "store"},
	"redis.db":                   {"client of the replicas", "options of Redis"},
	"redis.read_from":            {"asking", "client of the replicas", "store"},
	"redis.read_timeout":         {"options of Redis", "store"},
	"api.timeout":                {"asking", "store"},
	"api.tokens_file":            {"access", "asking"},
	"api.tls.client_ca":          {"access", "asking"},
}

// setting is a value other than the default, and further settings that it needs.
type setting struct {
	value  any
	with   map[string]any
	unless string // a key of with that the value does not allow
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
	entra := map[string]any{"redis.username": "weir", "redis.password": "secret", "redis.tls.enabled": true}
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
		"kafka.on_broken_batch":               {value: "stop"},
		"kafka.on_damaged_batch":              {value: "set_aside"},
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
		"redis.db":                            {value: 1, with: replica},
		"redis.addresses":                     {value: []string{"redis:6379"}},
		"redis.master_name":                   {value: "other", with: sentinel},
		"redis.read_from":                     {value: "replica", with: map[string]any{"redis.mode": "cluster"}},
		"redis.replicas":                      {value: []string{"other:6379"}, with: replica},
		"redis.allow_eviction":                {value: true},
		"redis.max_staleness":                 {value: "3s", with: replica},
		"redis.password_file":                 {value: secret},
		"redis.elasticache.cache":             {value: "other", with: cache},
		"redis.elasticache.region":            {value: "us-east-1", with: cache},
		"redis.elasticache.serverless":        {value: true, with: cache},
		"redis.azure.identity":                {value: "managed", with: entra, unless: "redis.password"},
		"redis.azure.client_id":               {value: "other", with: azure},
		"redis.username":                      {value: "other", with: map[string]any{"redis.username": "weir", "redis.password": "secret"}},
		"redis.sentinel_username":             {value: "weir", with: map[string]any{"redis.mode": "sentinel", "redis.master_name": "main", "redis.sentinel_password": "secret"}},
		"redis.sentinel_password":             {value: "secret", with: sentinel},
		"redis.sentinel_password_file":        {value: secret, with: sentinel},
		"store.type":                          {value: "ignite"},
		"store.hash_entities.key_file":        {value: secret},
		"store.seal.key_file":                 {value: secret},
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
		"api.tls.client_ca":                   {value: authority.CA, with: map[string]any{"api.tls.cert": cert, "api.tls.key": key, "api.tokens_file": file("tokens2", strings.Repeat("t", 40)+"\n")}},
		"api.tls.clients_file": {value: file("clients", "engine query\n"), with: map[string]any{
			"api.tls.cert": cert, "api.tls.key": key, "api.tls.client_ca": authority.CA, "api.tls.clients_file": file("clients1", "engine metrics\n")}},
		"log.level":            {value: "debug"},
		"log.format":           {value: "json"},
		"backfill.mode":        {value: "off"},
		"backfill.rate":        {value: 0.25},
		"profiles.listen":      {value: "127.0.0.1:7778"},
		"tracing.endpoint":     {value: "http://localhost:4318/v1/traces"},
		"tracing.sample_ratio": {value: 0.5},
	}
	values["registry.password_file"] = setting{value: file("other", "another secret\n"), with: map[string]any{
		"registry.url": "http://registry:8081", "registry.username": "weir", "registry.password_file": secret,
	}}
	values["redis.mode"] = setting{value: "cluster", unless: "redis.master_name", with: map[string]any{
		"redis.mode": "sentinel", "redis.master_name": "main", "redis.read_from": "replica",
	}}
	values["registry.tls.enabled"] = setting{value: true, with: registry}
	ignite := map[string]any{"store.type": "ignite"}
	for _, name := range []string{"backups", "data_region", "dial_timeout", "request_timeout"} {
		values["ignite."+name] = setting{value: otherThan(t, "ignite."+name), with: ignite}
	}
	values["ignite.addresses"] = setting{value: []string{"ignite:10800"}, with: ignite}
	values["ignite.tls.enabled"] = setting{value: true, with: ignite}
	user := map[string]any{"store.type": "ignite", "ignite.username": "weir", "ignite.password": "secret"}
	values["ignite.username"] = setting{value: "other", with: user}
	values["ignite.password"] = setting{value: "other", with: user}
	values["ignite.password_file"] = setting{value: file("other2", "another secret\n"), with: map[string]any{
		"store.type": "ignite", "ignite.username": "weir", "ignite.password_file": secret,
	}}
	for _, server := range []string{"kafka", "redis", "registry", "ignite"} {
		on := map[string]any{server + ".tls.enabled": true}
		if server == "registry" {
			on["registry.url"] = "https://registry:8081"
		}
		if server == "ignite" {
			on["store.type"] = "ignite"
		}
		pair := maps.Clone(on)
		pair[server+".tls.enabled"], pair[server+".tls.cert"], pair[server+".tls.key"] = true, cert, key
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
	t.Fatalf("otherValues has no value of %s", key)
	return nil
}
