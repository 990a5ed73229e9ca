package serve

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features/query"
)

// A text with any characters is the same entity in every format of questions, and is returned as sent.
func TestEntityIsTheSameInEveryFormat(t *testing.T) {
	h := newHandler(&fakeReader{states: stored()}, nil)
	for _, text := range []string{"d1", "", "17", "true", "null", `{"a":1}`, "a \"quoted\" one", `a\\b\u0041`, "\x00\x01\a\v\n", "\x7f\u0085\u2028", "caf\u00e9 \U0001f600", `"`} {
		literal := query.AppendString(nil, text)
		posted := do(t, h, "POST", queryPath, fmt.Sprintf(`{"features": ["device_tx_7d"], "entities": [{"device_id": %s}]}`, literal))
		got := do(t, h, "GET", "/v1/features/device_tx_7d?device_id="+url.QueryEscape(text), "")
		if posted.Code != 200 || got.Code != 200 || got.Body.String() != posted.Body.String() {
			t.Errorf("%q: GET %d %s\nPOST %d %s", text, got.Code, got.Body, posted.Code, posted.Body)
		}
		columns := do(t, h, "POST", feastPath, fmt.Sprintf(`{"features": ["device_tx_7d"], "entities": {"device_id": [%s]}}`, literal))
		want := fmt.Sprintf(`"results":[{"values":[%s],`, literal)
		if columns.Code != 200 || !strings.Contains(columns.Body.String(), want) {
			t.Errorf("%q: %d %s\nwant %s", text, columns.Code, columns.Body, want)
		}
	}
}
