package expr

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/value"
)

// comparedFields are the fields of a stream whose events are compared.
var comparedFields = []Variable{
	{Name: "n", Type: value.Int}, {Name: "amount", Type: value.Decimal, Scale: 2}, {Name: "score", Type: value.Float},
	{Name: "text", Type: value.String}, {Name: "ok", Type: value.Bool}, {Name: "at", Type: value.Timestamp},
}

// The terms of a filter are divided, and nothing else changes: an event passes both parts, if and only if it passes the whole
// over its fields and those of the event in hand under names of their own.
func TestComparisonIsItsParts(t *testing.T) {
	plain := append([]Variable{}, comparedFields...)
	for _, f := range comparedFields {
		f.Name = "event_" + f.Name
		plain = append(plain, f)
	}
	terms := []string{
		"ok", "event.ok", "n == event.n", "n > 3", "not (text == event.text)", "amount in [1, 2.50]", "abs(amount - event.amount) < 0.01", "nil",
		"score / n > event.score", "(text startsWith 'a' or text == nil)", "0 < n < event.n", "0.12345678901234567 < amount < 5", "at < event.at + 5",
		"(ok and event.ok)", "(ok ? n : event.n) > 2", `event["text"] contains text`, "(text ?? event?.text) != ''", "(ok or text matches '^a')", "n * n * event.n != 1",
	}
	with, alone := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(terms), 1, 5).Draw(t, "terms"), rapid.SampledFrom([]string{" and ", " && "}).Draw(t, "and"))
		if rapid.IntRange(0, 3).Draw(t, "brackets") == 0 {
			text = "(" + text + ") and n != event.n"
		}
		if !NamesEvent(text) {
			return
		}
		c, err := CompileComparison(text, comparedFields)
		if err != nil {
			t.Fatal(err)
		}
		if c.With == nil || !NamesEvent(c.With.Text) || c.Alone != nil && NamesEvent(c.Alone.Text) {
			t.Fatalf("%s is divided into %v and %v", text, c.Alone, c.With)
		}
		whole, err := Compile(strings.NewReplacer(`event["text"]`, "event_text", "event?.", "event_", "event.", "event_").Replace(text), plain, value.Bool)
		if err != nil {
			t.Fatal(err)
		}
		logged, inHand := comparedValues(t, "logged"), comparedValues(t, "in hand")
		want, err := whole.True(append(append([]value.Value{}, logged...), inHand...))
		if err != nil {
			return // null in an answer, and a dead letter over a record
		}
		got := true
		if c.Alone != nil {
			alone++
			got, _ = c.Alone.True(logged)
		}
		var read []value.Value
		for _, i := range c.Fields {
			read = append(read, logged[i])
		}
		holds := c.With.TrueWith(read, inHand)
		if with++; (got && holds) != want {
			t.Fatalf("%s of %v beside %v: alone %t, with %t, and the whole is %t", text, logged, inHand, got, holds, want)
		}
	})
	if alone == 0 || alone == with {
		t.Errorf("of %d filters, %d have terms of their own", with, alone)
	}
}

func comparedValues(t *rapid.T, of string) (values []value.Value) {
	n := rapid.SampledFrom([]int64{0, 1, 2, 3, 100, 250, -1, 9223372036854775807, -9223372036854775808})
	for _, f := range comparedFields {
		v := value.Value{Type: f.Type, Scale: f.Scale}
		switch f.Type {
		case value.Float:
			v.Flt = rapid.SampledFrom([]float64{0, 0.5, -1, 1e308, -1e308, 5e-324}).Draw(t, f.Name+" "+of)
		case value.String:
			v.Str = []byte(rapid.SampledFrom([]string{"", "a", "ab", "é", "event.text"}).Draw(t, f.Name+" "+of))
		case value.Bool:
			v.Num = rapid.Int64Range(0, 1).Draw(t, f.Name+" "+of)
		default:
			v.Num = n.Draw(t, f.Name+" "+of)
		}
		if rapid.IntRange(0, 5).Draw(t, f.Name+" is absent "+of) == 0 {
			v = value.Value{}
		}
		values = append(values, v)
	}
	return values
}

// What cannot be compared, because it is too large, is unknown and said.
func TestComparisonBeyond(t *testing.T) {
	c, err := CompileComparison("n * n * event.n > 5", comparedFields)
	if err != nil {
		t.Fatal(err)
	}
	event := make([]value.Value, len(comparedFields))
	event[0] = value.Value{Type: value.Int, Num: 1 << 62}
	if c.With.TrueWith(event[:1], event) || !c.With.Beyond() {
		t.Errorf("it is true, or said to be known")
	}
}

func TestNamesEvent(t *testing.T) {
	for text, want := range map[string]bool{
		"event.ip == ip": true, `event["ip"] == ip`: true, "not (1 < event?.n)": true, "event == ip": false, `ip == "event.ip"`: false,
		"the_event.ip": false, "ip == // event.ip": false, "": false, "a and": false, "a.event.ip": false, "in_event(event.ip)": true,
		strings.Repeat("(", 5000) + "event.ip": false,
	} {
		if got := NamesEvent(text); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
}
