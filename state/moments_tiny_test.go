package state

import (
	"testing"

	"github.com/weir-stream/weir/value"
)

// Values whose squared distance is too small for a float are not taken for equal ones: the error says so.
func TestMomentsOfTinyValues(t *testing.T) {
	of := func(f float64) Moments { return MomentsOf(&value.Value{Type: value.Float, Flt: f}) }
	far, equal := of(1e-170).Add(of(3e-170)), of(1e-170).Add(of(1e-170))
	if e := far.SpreadError(value.Float); e < 1 {
		t.Errorf("of different values: the spread is %v with an error of %v, want one of at least 1", far.Spread(value.Float, 0, 2), e)
	}
	if s, e := equal.Spread(value.Float, 0, 2), equal.SpreadError(value.Float); s != 0 || e != 0 {
		t.Errorf("of equal values: the spread is %v with an error of %v, want 0", s, e)
	}
}
