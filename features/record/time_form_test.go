package record

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/value"
)

// zones are such as change their clocks, also by half an hour and by a day, and one far from UTC.
var zones = []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu"}

func drawZone(t *rapid.T) *time.Location {
	zone, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// What package time writes is read, with an offset and without; and what it refuses as RFC 3339 is read only if it is in one of
// the forms that are read beside it.
func TestTimesOfISO(t *testing.T) {
	layouts := []string{
		time.RFC3339, time.RFC3339Nano, time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04:05.000Z07:00", "2006-01-02T15:04:05-0700",
		"2006-01-02 15:04:05-07", "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05,999999 Z0700", "2006-01-02t15:04:05-07:00",
	}
	rapid.Check(t, func(t *rapid.T) {
		zone := drawZone(t)
		layout := rapid.SampledFrom(layouts).Draw(t, "layout")
		at := time.UnixMilli(rapid.Int64Range(-62135510400000, 253402214399999).Draw(t, "at")).In(zone)
		if _, offset := at.Zone(); offset%3600 != 0 && (strings.HasSuffix(layout, "-07") || offset%60 != 0) {
			at = at.UTC() // an offset that the layout cannot write
		}
		text := []byte(at.Format(layout))
		if rapid.Bool().Draw(t, "changed") {
			text[rapid.IntRange(0, len(text)-1).Draw(t, "place")] = rapid.SampledFrom([]byte("0123456789-+:, TZtz.]")).Draw(t, "byte")
		}
		form := TimeForm{Unit: "datetime"}
		ms, ok := form.Parse(text)
		want, err := time.Parse(strings.Replace(layout, "t", "T", 1), strings.Replace(string(text), "t", "T", 1))
		if ok && err == nil && ms != min(max(want.UnixMilli(), firstMoment), lastMoment) {
			t.Fatalf("%s is %d, want %d", text, ms, want.UnixMilli())
		}
		if string(text) == at.Format(layout) && !ok {
			t.Fatalf("%s of %q is refused", text, layout)
		}
		var strict time.Time
		if err := strict.UnmarshalText(text); err == nil && want.Year() > 0 && !ok {
			_, seconds := strict.Zone()
			if strings.HasSuffix(string(text), ":60") || max(seconds, -seconds) >= 24*60*60 {
				return // which package time takes for offsets
			}
			t.Fatalf("%s is refused, and is RFC 3339", text)
		}
		if zoned := (&TimeForm{Unit: "rfc3339"}); ok {
			_, offset, has, _ := parseISO(text)
			again, accepted := zoned.Parse(text)
			if accepted != has || accepted && again != ms || zoned.withoutOffset(text) == has {
				t.Fatalf("%s with an offset of %d (%t): accepted as RFC 3339 is %t, as %d", text, offset, has, accepted, again)
			}
		}
	})
}

func TestTimesRefused(t *testing.T) {
	for _, text := range []string{
		"", "2026", "2026-01-31", "2026-01-31T", "2026-01-31T10", "2026-01-31T1:00:00Z", "2026-02-29T10:00:00Z", "2026-04-31 10:00:00", "2100-02-29 10:00:00",
		"0000-01-01 00:00:00", "2026-13-01 10:00:00", "2026-01-31 24:00:00", "2026-01-31 10:60:00", "2026-01-31 10:00:60", "2026-01-31 10:00:00.", "2026-01-31 10:00:00+",
		"2026-01-31 10:00:00+1", "2026-01-31 10:00:00+01:", "2026-01-31 10:00:00+01:60", "2026-01-31 10:00:00+24:00", "2026-01-31 10:00:00 CET", "2026-01-31 10:00:00  Z",
		"2026-01-31 10:00:00 ", "2026-01-31 10:00:00[Europe/Berlin]", "2026-01-31 10:00:0é", "２026-01-31 10:00:00",
	} {
		if ms, ok := (&TimeForm{Unit: "datetime", Zone: time.UTC}).Parse([]byte(text)); ok {
			t.Errorf("%q is %d, want that it is refused", text, ms)
		}
	}
}

// A time on a clock is the first moment at which it shows that time; one that it skips is as much later as was skipped.
func TestTimesInZones(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := drawZone(t)
		at := time.Unix(rapid.Int64Range(0, 2_000_000_000).Draw(t, "at"), 0).In(zone)
		if _, change := at.ZoneBounds(); rapid.Bool().Draw(t, "near a change") && !change.IsZero() {
			at = change.Add(time.Duration(rapid.IntRange(-26*60, 26*60).Draw(t, "minutes")) * time.Minute)
		}
		_, seconds := at.Zone()
		local := at.UnixMilli() + int64(seconds)*1000
		shows := func(ms int64) int64 {
			_, seconds := time.UnixMilli(ms).In(zone).Zone()
			return ms + int64(seconds)*1000
		}
		var want []int64
		const quarter = 15 * 60 * 1000
		for ms := local - 14*4*quarter; ms <= local+14*4*quarter; ms += quarter {
			if shows(ms) == local {
				want = append(want, ms)
			}
		}
		got := inZone(local, zone)
		switch {
		case len(want) > 0 && got != slices.Min(want):
			t.Fatalf("%s in %s is %d, want the first of %v", time.UnixMilli(local).UTC(), zone, got, want)
		case len(want) == 0:
			before, _ := time.UnixMilli(got).In(zone).ZoneBounds()
			if skipped := shows(before.UnixMilli()) - shows(before.UnixMilli()-1) - 1; shows(got)-local != skipped {
				t.Fatalf("%s, which clocks in %s skip, is %d later, want %d", time.UnixMilli(local).UTC(), zone, shows(got)-local, skipped)
			}
		}
	})
}

// Whatever is written in a form is read as it was.
func TestTimesInTheirForm(t *testing.T) {
	forms := []TimeForm{
		{}, {Unit: "s"}, {Unit: "ms"}, {Unit: "us"}, {Unit: "ns"}, {Unit: "rfc3339"}, {Unit: "datetime"}, {Unit: "auto"},
		{Layout: "02.01.2006 15:04:05.000"}, {Layout: "Mon, 02 Jan 2006 15:04:05.000 -0700"}, {Layout: "20060102150405.000"}, {Layout: "3:04:05.000 PM, 1/2/2006"},
	}
	rapid.Check(t, func(t *rapid.T) {
		form := rapid.SampledFrom(forms).Draw(t, "form")
		if zone := drawZone(t); !slices.Contains([]string{"s", "ms", "us", "ns"}, form.Unit) {
			form.Zone = zone
		}
		ms := rapid.Int64Range(firstMoment+dayMillis, lastMoment-dayMillis).Draw(t, "ms")
		if form.Unit == "ns" || form.Unit == "us" { // numbers of at most 64 bits
			ms /= 1000
		}
		text, quoted := form.Append(nil, ms)
		d := Datum{Type: Number, Text: text}
		if quoted {
			d.Type = String
		}
		if got, how := d.moment(&form); how != value.Exact || got != ms {
			t.Fatalf("%d in %s is %s, read as %d (%d)", ms, form, text, got, how)
		}
		if form.Layout == "" {
			return
		}
		local := time.UnixMilli(ms).In(form.Zone)
		_, seconds := local.Zone()
		want := inZone(ms+int64(seconds)*1000, form.Zone) // the first of two
		if HasOffset(form.Layout) {
			if want = ms; seconds%60 != 0 {
				return // an offset of before there were zones
			}
		}
		d = Datum{Type: String, Text: []byte(local.Format(form.Layout))}
		if got, how := d.moment(&form); how != value.Exact || got != want {
			t.Fatalf("%s in %s is read as %d (%d), want %d", d.Text, form, got, how, want)
		}
	})
}

// A moment is written as a number of JSON.
func TestMomentsInRecords(t *testing.T) {
	for unit, scale := range map[string]int{"s": 3, "ms": 0, "us": -3, "ns": -6} {
		for _, ms := range []int64{0, 1, -1, 1_769_853_600_123, lastMoment} {
			text := TimeForm{Unit: unit}.JSON(ms)
			n, ok := value.ParseNumber([]byte(text))
			if got, how := n.Scaled(scale); !ok || how != value.Exact || got != ms {
				t.Errorf("%d ms are written in %s as %s", ms, unit, text)
			}
		}
	}
}

// A number of any unit is read in the one in which it is of the years 1973 to 5138.
func TestAutomaticUnits(t *testing.T) {
	form := TimeForm{Unit: "auto"}
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(100_000_000_000, 9_223_372_036_854).Draw(t, "ms")
		for _, unit := range []int64{-1000, 1, 1000, 1_000_000} {
			text := fmt.Sprint(ms * max(unit, 1))
			want := ms
			if unit < 0 {
				want = ms / 1000 * 1000
				text = fmt.Sprint(ms / 1000)
			}
			for _, typ := range []DatumType{Number, String, Untyped} {
				d := Datum{Type: typ, Text: []byte(text)}
				if got, how := d.moment(&form); got != want || how != value.Exact {
					t.Fatalf("%s is %d (%d), want %d", text, got, how, want)
				}
			}
		}
	})
}

func TestCheckLayout(t *testing.T) {
	for layout, want := range map[string]string{
		"2006-01-02":                     "",
		"02.01.2006 15:04:05":            "",
		"Mon Jan _2 15:04:05 -0700 2006": "",
		"20060102150405":                 "",
		"01/02/06 3:04PM":                "",
		"2006 002":                       "",
		"yyyy-MM-dd":                     "at least its year",
		"%Y-%m-%d":                       "at least its year",
		"15:04:05":                       "at least its year",
		"2006-01":                        "at least its year",
		"":                               "at least its year",
		"2006-01-02 03:04:05":            "hours up to 12 need PM",
		"Mon, 02 Jan 2006 15:04:05 MST":  "abbreviations of time zones",
	} {
		if err := CheckLayout(layout); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", layout, err, want)
		}
	}
}

func FuzzParseISO(f *testing.F) {
	for _, text := range []string{"2026-01-31T10:00:00.123Z", "2026-01-31 10:00+01[Europe/Berlin]", "2026-01-31 10:00:00,1 UTC"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ms, offset, has, ok := parseISO(text)
		if ok && (ms < firstMoment || ms > lastMoment || offset < -dayMillis || offset > dayMillis || !has && offset != 0) {
			t.Fatalf("%q: %d, %d, %t", text, ms, offset, has)
		}
	})
}
