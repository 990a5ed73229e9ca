package serve

import (
	"net/http"

	_ "embed"

	"github.com/weir-stream/weir/serve/reply"
)

//go:embed openapi.yaml
var openAPI []byte

// openAPI describes all paths in OpenAPI 3.1.
func (h *handler) openAPI(w http.ResponseWriter, _ *http.Request) {
	reply.RespondAs(w, http.StatusOK, "application/yaml", openAPI)
}
