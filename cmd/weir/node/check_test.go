package node

import (
	"strings"
	"testing"

	"github.com/weir-stream/weir/operate/doctor"
)

// The doctor's findings are lines of the check, and each FAIL among them fails it.
func TestCheckTakesFindings(t *testing.T) {
	var out strings.Builder
	list := &checkList{out: &out}
	list.take(doctor.Findings{
		{Verdict: doctor.OK, Subject: "schema of payments", Found: "avro"},
		{Verdict: doctor.Warn, Subject: "schema of orders", Found: "the registry has no subject", Do: "nothing"},
		{Verdict: doctor.Fail, Subject: "schema registry", Found: "registry.url is not set", Do: "set it"},
	})
	const want = "ok    schema of payments           avro\n" +
		"warn  schema of orders             the registry has no subject\n" +
		"FAIL  schema registry              registry.url is not set\n"
	if got := out.String(); got != want || list.failed != 1 {
		t.Errorf("%d failed, got\n%swant\n%s", list.failed, got, want)
	}
}
