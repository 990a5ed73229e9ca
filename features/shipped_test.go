package features_test

import (
	"os"
	"testing"

	"github.com/weir-stream/weir/features"
)

func TestX(t *testing.T) {
	r, err := features.Load("../config/features")
	if err != nil {
		t.Fatal(err)
	}
	r.Explain().WriteText(os.Stdout)
}
