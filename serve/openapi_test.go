package serve

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.opentelemetry.io/otel/propagation"
	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/serve/reply"
)

// contract is /openapi.yaml, prepared for checking requests and responses.
type contract struct {
	root     map[string]any
	compiler *jsonschema.Compiler
	lock     sync.Mutex
}

var theContract = sync.OnceValue(func() *contract {
	var parsed any
	if err := yaml.Unmarshal(openAPI, &parsed); err != nil {
		panic(err)
	}
	closeObjects(parsed.(map[string]any)["components"].(map[string]any)["schemas"])
	text, err := json.Marshal(parsed)
	if err != nil {
		panic(err)
	}
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	c := &contract{root: root.(map[string]any), compiler: jsonschema.NewCompiler()}
	c.compiler.AssertFormat()
	if err := c.compiler.AddResource("openapi.json", root); err != nil {
		panic(err)
	}
	return c
})

// closeObjects forbids undescribed properties. Clients must accept them, so the document does not
// forbid them.
func closeObjects(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if _, ok := s["properties"].(map[string]any); ok && s["additionalProperties"] == nil {
			s["additionalProperties"] = false
		}
		for _, part := range s {
			closeObjects(part)
		}
	case []any:
		for _, part := range s {
			closeObjects(part)
		}
	}
}

// at follows a path through the document, and the reference at its end.
func (c *contract) at(way ...string) (pointer string, value map[string]any) {
	value = c.root
	for _, step := range way {
		value, _ = value[step].(map[string]any)
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step)
	}
	if ref, ok := value["$ref"].(string); ok {
		return c.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return pointer, value
}

// path is the documented path of a request; empty if none.
func (c *contract) path(path string) string {
	_, paths := c.at("paths")
	if paths[path] != nil {
		return path
	}
	for template := range paths {
		if before, _, ok := strings.Cut(template, "{"); ok && strings.HasPrefix(path, before) && len(path) > len(before) &&
			!strings.Contains(path[len(before):], "/") {
			return template
		}
	}
	return ""
}

// check reports where JSON violates the schema at a location of the document.
func (c *contract) check(t testing.TB, what string, body []byte, place string) {
	t.Helper()
	c.lock.Lock()
	schema, err := c.compiler.Compile("openapi.json#" + place + "/content/application~1json/schema")
	c.lock.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err == nil {
		err = schema.Validate(instance)
	}
	if err != nil {
		t.Errorf("%s does not conform to /openapi.yaml: %v\n%s", what, err, body)
	}
}

// checkContract compares an answered request, and any response, with the document.
func checkContract(t testing.TB, method, target, body string, w *httptest.ResponseRecorder) {
	t.Helper()
	address, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	checkContractOf(t, method, address.Path, body, w)
}

// checkHeaders reports the headers for clients that a response of the document does not have.
func (c *contract) checkHeaders(t testing.TB, what string, sent http.Header, response map[string]any) {
	t.Helper()
	documented, _ := response["headers"].(map[string]any)
	for _, name := range []string{"Allow", "ETag", "Retry-After", "WWW-Authenticate"} {
		if sent.Get(name) != "" && documented[name] == nil {
			t.Errorf("%s has the header %s, which is not in /openapi.yaml", what, name)
		}
	}
}

// checkContractOf is checkContract for a path.
func checkContractOf(t testing.TB, method, asked, body string, w *httptest.ResponseRecorder) {
	t.Helper()
	c := theContract()
	failure, refused := c.at("components", "responses", "Refused")
	path := c.path(asked)
	if path == "" {
		if w.Code != http.StatusNotFound {
			t.Errorf("%s answers %d, but is not in /openapi.yaml", asked, w.Code)
		}
		c.check(t, "the refusal", w.Body.Bytes(), failure)
		return
	}
	way := []string{"paths", path, strings.ToLower(method)}
	if _, operation := c.at(way...); operation == nil {
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s %s answers %d, but is not in /openapi.yaml", method, path, w.Code)
		}
		c.check(t, "the refusal", w.Body.Bytes(), failure)
		c.checkHeaders(t, "the refusal", w.Header(), refused)
		return
	}
	if place, request := c.at(append(way, "requestBody")...); request != nil && w.Code == http.StatusOK {
		c.check(t, "the question", []byte(body), place)
	}
	status := strconv.Itoa(w.Code)
	place, response := c.at(append(way, "responses", status)...)
	if response == nil {
		place, response = c.at(append(way, "responses", status[:1]+"XX")...)
	}
	if response == nil {
		t.Errorf("%s %s answers %d, which is not in /openapi.yaml", method, path, w.Code)
		return
	}
	c.check(t, "the answer", w.Body.Bytes(), place)
	c.checkHeaders(t, "the answer", w.Header(), response)
}

func TestOpenAPIIsServed(t *testing.T) {
	w := httptest.NewRecorder()
	newHandler(&fakeReader{}, nil).ServeHTTP(w, httptest.NewRequest("GET", "/openapi.yaml", nil))
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/yaml" || !bytes.Equal(w.Body.Bytes(), openAPI) {
		t.Errorf("got status %d, headers %s and %d bytes; want 200, application/yaml and the document", w.Code, w.Header(), w.Body.Len())
	}
}

// All paths of the document exist; checkContract checks the reverse.
func TestOpenAPIPaths(t *testing.T) {
	_, paths := theContract().at("paths")
	for path, methods := range paths {
		for method := range methods.(map[string]any) {
			w := httptest.NewRecorder()
			target := strings.NewReplacer("{name}", "device_tx_7d", "{file}", "page.css").Replace(path)
			newHandler(&fakeReader{}, nil).ServeHTTP(w, httptest.NewRequest(strings.ToUpper(method), target, nil))
			unknown := w.Code == http.StatusNotFound && strings.Contains(w.Body.String(), string(reply.UnknownPath))
			if unknown || w.Code == http.StatusMethodNotAllowed {
				t.Errorf("%s %s is in the document, but was answered with %d", method, path, w.Code)
			}
		}
	}
}

var update = flag.Bool("update", false, "write the options of a question into openapi.yaml")

// The document has the options of a question as their table describes them.
func TestOpenAPIOptions(t *testing.T) {
	const first, last = "        # From the table in options.go.\n", "        # To here.\n"
	before, rest, found := strings.Cut(string(openAPI), first)
	written, after, ended := strings.Cut(rest, last)
	if !found || !ended {
		t.Fatal("openapi.yaml lacks the place of the options")
	}
	want := ""
	for _, o := range options {
		want += "        " + o.key + ":" + o.openAPI + "\n"
	}
	if *update {
		if err := os.WriteFile("openapi.yaml", []byte(before+first+want+last+after), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(want, written); diff != "" {
		t.Errorf("go test ./serve -run OpenAPIOptions -update writes openapi.yaml (-options.go +openapi.yaml):\n%s", diff)
	}
}

// In the document exactly the questions take the headers of a trace.
func TestOpenAPIHeaders(t *testing.T) {
	want := map[string][]string{}
	for _, path := range []string{"/v1/query", "/v1/features/{name}", "/v1/timeline/{name}", "/get-online-features"} {
		want[path] = propagation.TraceContext{}.Fields()
		slices.Sort(want[path])
	}
	c, got := theContract(), map[string][]string{}
	_, paths := c.at("paths")
	for path, methods := range paths {
		for _, operation := range methods.(map[string]any) {
			parameters, _ := operation.(map[string]any)["parameters"].([]any)
			for _, p := range parameters {
				parameter := p.(map[string]any)
				if ref, ok := parameter["$ref"].(string); ok {
					_, parameter = c.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
				}
				if parameter["in"] == "header" {
					got[path] = append(got[path], parameter["name"].(string))
				}
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers by path (-want +got):\n%s", diff)
	}
}

// The document has every code, with its status.
func TestOpenAPICodes(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "reply/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "Code" {
				code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				want[code] = strconv.Itoa(reply.Errorf(reply.Code(code), "").Status)
			}
		}
		return true
	})
	if len(want) == 0 {
		t.Fatal("errors.go has no codes")
	}
	got := map[string]string{}
	_, schema := theContract().at("components", "schemas", "Code")
	for _, one := range schema["oneOf"].([]any) {
		code := one.(map[string]any)
		status, _, _ := strings.Cut(code["description"].(string), ":")
		got[code["const"].(string)] = status
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("codes (-errors.go +openapi.yaml):\n%s", diff)
	}
}
