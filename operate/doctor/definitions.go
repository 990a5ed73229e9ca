package doctor

import (
	"errors"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
)

// Definitions loads the definitions; the registry is nil if they are invalid.
func Definitions(paths []string) (*features.Registry, Findings) {
	var f Findings
	registry, err := definition.Load(paths...)
	if err == nil {
		f.ok("definitions", "%s of %s", plural(len(registry.Features), "feature"), plural(len(registry.Streams), "stream"))
		return registry, f
	}
	wrong, _ := errors.AsType[definition.Findings](err) // all its errors are
	for _, w := range wrong {
		f.add(Fail, "definitions", w.String(), "correct it; weir validate checks only the definitions")
	}
	return nil, f
}
