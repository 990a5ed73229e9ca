package serve

import (
	"slices"
	"testing"

	"github.com/weir-stream/weir/features/query"
)

// The document has every status, and each has a status of Feast's clients. The Go client is tested separately.
func TestEveryStatusIsKnown(t *testing.T) {
	_, documented := theContract().at("components", "schemas", "Status")
	var inDocument []query.Status
	for _, one := range documented["oneOf"].([]any) {
		inDocument = append(inDocument, query.Status(one.(map[string]any)["const"].(string)))
	}
	_, feast := theContract().at("components", "schemas", "FeastAnswer", "properties", "results", "items", "properties", "statuses", "items")
	for _, s := range query.Statuses {
		if !slices.Contains(inDocument, s) {
			t.Errorf("openapi.yaml lacks the status %s", s)
		}
		if !slices.Contains(feast["enum"].([]any), any(feastStatuses[s])) {
			t.Errorf("%s is %q in Feast's protocol, which has only %v", s, feastStatuses[s], feast["enum"])
		}
	}
	if n := len(query.Statuses); len(inDocument) != n || len(feastStatuses) != n {
		t.Errorf("%d statuses; openapi.yaml has %d, Feast's format %d", n, len(inDocument), len(feastStatuses))
	}
}
