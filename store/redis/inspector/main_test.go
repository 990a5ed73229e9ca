package inspector

import (
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
