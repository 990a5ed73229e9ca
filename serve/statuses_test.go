package serve

import (
	"slices"
	"testing"

	"github.com/weir-stream/weir/client"
	"github.com/weir-stream/weir/features/query"
)

// Whoever reads answers knows every status: the document, the client, and
// Feast's clients one of their own for each.
func TestEveryStatusIsKnown(t *testing.T) {
	_, documented := theContract().at("components", "schemas", "Status")
	var inDocument []query.Status
	for _, one := range documented["oneOf"].([]any) {
		inDocument = append(inDocument, query.Status(one.(map[string]any)["const"].(string)))
	}
	var inClient []query.Status
	for _, s := range client.Statuses {
		inClient = append(inClient, query.Status(s))
	}
	_, feast := theContract().at("components", "schemas", "FeastAnswer", "properties", "results", "items", "properties", "statuses", "items")
	for _, s := range query.Statuses {
		if !slices.Contains(inDocument, s) {
			t.Errorf("openapi.yaml does not know %s", s)
		}
		if !slices.Contains(inClient, s) {
			t.Errorf("the client does not know %s", s)
		}
		if !slices.Contains(feast["enum"].([]any), any(feastStatuses[s])) {
			t.Errorf("%s is %q over Feast's protocol, which is none of %v", s, feastStatuses[s], feast["enum"])
		}
	}
	if n := len(query.Statuses); len(inDocument) != n || len(inClient) != n || len(feastStatuses) != n {
		t.Errorf("%d statuses; openapi.yaml has %d, the client %d, Feast's form %d", n, len(inDocument), len(inClient), len(feastStatuses))
	}
}
