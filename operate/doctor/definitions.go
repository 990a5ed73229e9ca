package doctor

import (
	"errors"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
)

// Definitions loads the definitions; the registry is nil where they are not
// valid.
func Definitions(paths []string) (*features.Registry, Findings) {
	var f Findings
	registry, err := definition.Load(paths...)
	if err == nil {
		f.ok("definitions", "%s of %s", plural(len(registry.Features), "feature"), plural(len(registry.Streams), "stream"))
		return registry, f
	}
	wrong, _ := errors.AsType[definition.Findings](err) // all its errors are
	for _, w := range wrong {
		f.add(Fail, "definitions", w.String(), "mend it; weir validate looks at definitions alone")
	}
	return nil, f
}
