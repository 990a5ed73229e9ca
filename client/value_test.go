package client

import (
	"testing"
	"time"
)

// Each value converts to some types and to no others.
func TestAccessors(t *testing.T) {
	for _, test := range []struct {
		json  string
		types string
	}{
		{`3`, "int float number time"},
		{`-9223372036854775808`, "int float number time"},
		{`166.60`, "float number"},
		{`99999999999999999999`, "float number"}, // a sum may be that large
		{`"3"`, "string"},
		{`true`, "bool"},
		{`null`, ""},
		{``, ""},
		{`{"lat":52.5,"lon":13.4}`, "location categories"},
		{`{"DE":2,"FR":1}`, "categories"},
		{`[]`, "list counts bins"},
		{`[1,"a",null]`, "list"},
		{`[{"value":"DE","count":2}]`, "list counts"},
		{`[{"from":null,"to":10,"count":2}]`, "list bins"},
	} {
		v := Value{[]byte(test.json)}
		got := ""
		for _, is := range []struct {
			name string
			ok   func() bool
		}{
			{"int", func() bool { _, ok := v.Int(); return ok }},
			{"float", func() bool { _, ok := v.Float(); return ok }},
			{"number", func() bool { _, ok := v.Number(); return ok }},
			{"time", func() bool { _, ok := v.Time(); return ok }},
			{"string", func() bool { _, ok := v.String(); return ok }},
			{"bool", func() bool { _, ok := v.Bool(); return ok }},
			{"location", func() bool { _, _, ok := v.Location(); return ok }},
			{"categories", func() bool { _, ok := v.Categories(); return ok }},
			{"list", func() bool { _, ok := v.List(); return ok }},
			{"counts", func() bool { _, ok := v.Counts(); return ok }},
			{"bins", func() bool { _, ok := v.Bins(); return ok }},
		} {
			if is.ok() {
				got += " " + is.name
			}
		}
		if got = got[min(1, len(got)):]; got != test.types {
			t.Errorf("%s has the types %q, want %q", test.json, got, test.types)
		}
	}

	of := func(json string) Value { return Value{[]byte(json)} }
	if n, _ := of(`166.60`).Number(); n != "166.60" {
		t.Errorf("the number 166.60 is read as %s", n)
	}
	if at, _ := of(`1532496076032`).Time(); !at.Equal(time.Date(2018, 7, 25, 5, 21, 16, 32_000_000, time.UTC)) {
		t.Errorf("the time 1532496076032 is read as %v", at)
	}
	if lat, lon, _ := of(`{"lat":52.5,"lon":13.4}`).Location(); lat != 52.5 || lon != 13.4 {
		t.Errorf("the location is %v %v, want 52.5 13.4", lat, lon)
	}
	byCountry, _ := of(`{"DE":2,"FR":1}`).Categories()
	if n, _ := byCountry["DE"].Int(); n != 2 || len(byCountry) != 2 {
		t.Errorf("the categories are %v, want DE with 2", byCountry)
	}
	bins, _ := of(`[{"from":null,"to":10,"count":2}]`).Bins()
	if to, _ := bins[0].To.Int(); !bins[0].From.IsNull() || to != 10 || bins[0].Count != 2 {
		t.Errorf("the bins are %v, want the first without a beginning, up to 10, with 2", bins)
	}
	if string(of(`[1]`).JSON()) != "[1]" {
		t.Error("JSON() does not return the value as it was sent")
	}
}
