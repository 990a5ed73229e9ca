package value

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Nearest is what rational numbers give, of texts of any length.
func TestNearest(t *testing.T) {
	half := big.NewRat(1, 2)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringMatching(`-?(0|[1-9][0-9]{0,80})(\.[0-9]{1,80})?([eE][+-]?[0-9]{1,2})?`),
			rapid.StringMatching(`-?(922337203685477580[5-9]|18446744073709551615|0)(\.[0-9]{0,3}[1-9])?`),
			rapid.StringMatching(`-?[0-9](\.[0-9]{3})?5`),
		).Draw(t, "text")
		shift := rapid.IntRange(-80, 80).Draw(t, "shift")
		if rapid.Bool().Draw(t, "as it is") {
			shift = 0
		}
		n, how, ok := Nearest([]byte(text), shift)
		if wanted := ScanNumber([]byte(text), 0) == len(text); ok != wanted {
			t.Fatalf("%s is a number: %t, want %t", text, ok, wanted)
		}
		if !ok {
			return
		}
		exact, _ := new(big.Rat).SetString(text)
		scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(shift, -shift))), nil))
		if shift < 0 {
			scale.Inv(scale)
		}
		exact.Mul(exact, scale)
		away := new(big.Rat).Add(new(big.Rat).Abs(exact), half)
		want := new(big.Int).Quo(away.Num(), away.Denom())
		if exact.Sign() < 0 {
			want.Neg(want)
		}
		switch {
		case !want.IsInt64() && how != Overflow, want.IsInt64() && how == Overflow:
			t.Fatalf("%s shifted by %d is %s: %d (%d)", text, shift, want, n, how)
		case want.IsInt64() && (want.Int64() != n || exact.IsInt() != (how == Exact)):
			t.Fatalf("%s shifted by %d is %d (%d), want %s of %s", text, shift, n, how, want, exact)
		}
	})
}

// A text cannot make it work for long.
func TestNearestOfExtremes(t *testing.T) {
	for text, want := range map[string]string{
		"1e999999999999":                      "0 2 true",
		"0e999999999999":                      "0 0 true",
		"1e-999999999999":                     "0 1 true",
		"-5e-1":                               "-1 1 true",
		"0." + strings.Repeat("0", 1e6) + "1": "0 1 true",
		strings.Repeat("9", 1e6):              "0 2 true",
		"-9223372036854775808.4":              "-9223372036854775808 1 true",
		"-9223372036854775808.5":              "0 2 true",
		"9223372036854775807.5":               "0 2 true",
		"":                                    "0 0 false",
		"+1":                                  "0 0 false",
		"1 ":                                  "0 0 false",
	} {
		n, how, ok := Nearest([]byte(text), 0)
		if got := fmt.Sprint(n, how, ok); got != want {
			t.Errorf("%.40s is %s, want %s", text, got, want)
		}
	}
}
