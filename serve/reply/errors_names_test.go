package reply

import (
	"fmt"
	"testing"
)

// An unknown name is answered with the nearest that exists, or else with the first ones.
func TestUnknown(t *testing.T) {
	var many []string
	for i := range 12 {
		many = append(many, fmt.Sprint("service_", i))
	}
	for _, test := range []struct {
		name  string
		names []string
		want  string
	}{
		{"risks", []string{"risk", "fraud"}, `there is no service "risks"; did you mean "risk"?`},
		{"refunds", []string{"risk", "fraud"}, `there is no service "refunds"; known are risk, fraud`},
		{"refunds", many, `there is no service "refunds"; known are service_0, service_1, service_2, service_3, service_4, service_5, service_6, service_7, service_8, service_9 and 2 more`},
		{"refunds", nil, `there is no service "refunds"`},
	} {
		if got := Unknown(UnknownService, "service", test.name, test.names).Message; got != test.want {
			t.Errorf("%s of %d names: %s, want %s", test.name, len(test.names), got, test.want)
		}
	}
}
