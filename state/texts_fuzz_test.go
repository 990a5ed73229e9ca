package state

import "testing"

// FuzzTexts parses any text as each of those that the store keeps: what is parsed is written so that it parses to the same.
func FuzzTexts(f *testing.F) {
	f.Add("0:5 3:9")
	f.Add("3/ab")
	f.Add("AAAAAAAAAAAAAAAAAAAAAA==")
	f.Fuzz(func(t *testing.T, text string) {
		if ends, err := ParseEnds(text); err == nil {
			if again, err := ParseEnds(ends.Text()); err != nil || again.Text() != ends.Text() {
				t.Errorf("the ends %q are %v, and then %v, error %v", text, ends, again, err)
			}
		}
		if secret, err := ParseSecret(text); err == nil {
			if again, err := ParseSecret(secret.Text()); err != nil || again != secret {
				t.Errorf("a secret is another one when it is read again, error %v", err)
			}
		}
		_, _ = ParseFirstSeen(text) // an error, or not
		ParseLogID(text)
		var g Generation
		if g.UnmarshalText([]byte(text)) == nil {
			var again Generation
			if err := again.UnmarshalText([]byte(g.String())); err != nil || again != g {
				t.Errorf("the generation %q is %v, and then %v, error %v", text, g, again, err)
			}
		}
	})
}
