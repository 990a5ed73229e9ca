package features_test

import (
	"testing"

	"github.com/weir-stream/weir/features"
)

func TestX(t *testing.T) {
	r, err := features.Load("../config/features")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Features {
		t.Logf("%s = %s\n   -- %s", f.Name, f.Definition, f.Description)
	}
	for _, s := range r.Series {
		t.Logf("%+v", *s)
	}
}
