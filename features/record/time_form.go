package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/weir-stream/weir/value"
)

// TimeForm is how times are written in records. The zero TimeForm is a number of milliseconds since 1970, or a text as
// with the unit rfc3339.
type TimeForm struct {
	// Unit is, of numbers since 1970, s, ms, us or ns. Texts are rfc3339, which have an offset from UTC unless there is a
	// Zone, or datetime, which may have one. With auto they are either: numbers, also in texts, have the unit in which they
	// lie in the years 1973 to 5138, and texts are as with datetime.
	Unit string
	// Layout is, instead of a unit, that of a text, in the words of package time. RFC 3339 is read beside it.
	Layout string
	// Zone is that of texts without an offset; nil is UTC.
	Zone *time.Location
	// Lenient means that numbers may be texts, too.
	Lenient bool
}

// TimeUnits are the units, as definitions name them.
var TimeUnits = []string{"auto", "s", "ms", "us", "ns", "rfc3339", "datetime"}

// String describes the form; empty for the zero TimeForm. Equal forms have equal texts.
func (f TimeForm) String() string {
	text := f.Unit
	if f.Layout != "" {
		text = "layout " + strconv.Quote(f.Layout)
	}
	if f.Zone != nil {
		text += " tz " + f.Zone.String()
	}
	if f.Lenient {
		text += " lenient"
	}
	return strings.TrimPrefix(text, " ")
}

// CheckLayout returns why times cannot be read by a layout.
func CheckLayout(layout string) error {
	if strings.Contains(layout, "MST") {
		return errors.New("abbreviations of time zones are ambiguous: write -0700 for an offset, or set tz")
	}
	sample := time.Date(2001, 11, 23, 17, 48, 56, 0, time.FixedZone("", 5*60*60+30*60))
	read, err := time.Parse(layout, sample.Format(layout))
	y, m, d := read.Date()
	switch {
	case err != nil, y != sample.Year(), m != sample.Month(), d != sample.Day():
		return errors.New("it must show how 2006-01-02 15:04:05 is written, at least its year, month and day, such as 02.01.2006 15:04")
	case read.Hour() != sample.Hour() && read.Hour() != 0:
		return errors.New("hours up to 12 need PM; write 15 for hours up to 23")
	}
	return nil
}

// HasOffset reports whether texts of a layout have an offset from UTC.
func HasOffset(layout string) bool {
	at := func(offset int) string {
		return time.Date(2006, 1, 2, 15, 4, 5, 0, time.FixedZone("", offset)).Format(layout)
	}
	return at(0) != at(60*60)
}

// ofNumbers reports whether a value is a number since 1970 in this form, and not a text.
func (f *TimeForm) ofNumbers(d *Datum) bool {
	if f.Layout != "" {
		return false
	}
	switch f.Unit {
	case "rfc3339", "datetime":
		return false
	case "auto":
		return d.Type == Number || d.isText() && d.writtenAsNumber()
	case "":
		return d.isNumber() && (d.Type == Number || d.writtenAsNumber()) || f.Lenient && d.Type == String && d.writtenAsNumber()
	}
	return true
}

// unitOf returns the unit of a number of any unit, as a power of ten of a second: milliseconds if the form has none.
func (f *TimeForm) unitOf(n value.Number) int {
	if f.Unit != "auto" {
		return -3
	}
	whole, _ := n.Scaled(0)
	for unit := 0; unit > -9; unit -= 3 {
		if -1e11 < whole && whole < 1e11 {
			return unit
		}
		whole /= 1000
	}
	return -9
}

// Parse reads a text of this form, in milliseconds since 1970; finer times are rounded down. Of a text within the first or
// last day of the years 1 to 9999 the result is within these years.
func (f *TimeForm) Parse(text []byte) (ms int64, ok bool) {
	var offset int64
	var has bool
	if f.Layout != "" {
		ms, offset, has, ok = f.parseLayout(text)
	}
	if !ok {
		ms, offset, has, ok = parseISO(text)
		ok = ok && (has || f.Layout == "" && (f.Zone != nil || f.Unit == "datetime" || f.Unit == "auto"))
	}
	switch {
	case !ok:
		return 0, false
	case has:
		ms -= offset
	default:
		ms = f.InZone(ms)
	}
	return min(max(ms, firstMoment), lastMoment), true
}

// withoutOffset reports whether a text is refused only because it has no offset from UTC.
func (f *TimeForm) withoutOffset(text []byte) bool {
	if f.Layout != "" || f.Zone != nil || f.Unit != "rfc3339" && f.Unit != "" {
		return false
	}
	_, _, has, ok := parseISO(text)
	return ok && !has
}

// offsetMissing is the end of a message about such a text.
const offsetMissing = ", which has no offset from UTC: set tz, the time zone of such texts"

// parseLayout is parseISO for the form's layout.
func (f *TimeForm) parseLayout(text []byte) (ms, offset int64, has, ok bool) {
	t, err := time.ParseInLocation(f.Layout, unsafe.String(unsafe.SliceData(text), len(text)), noOffset)
	if year := t.Year(); err != nil || year < 1 || year > 9999 {
		return 0, 0, false, false
	}
	_, seconds := t.Zone()
	offset = int64(seconds) * 1000
	return t.UnixMilli() + offset, offset, t.Location() != noOffset, true
}

// noOffset stands for the lack of an offset: no text has this one.
var noOffset = time.FixedZone("none", 1)

// parseISO reads a date and time of ISO 8601: 2006-01-02T15:04:05.999Z, where a space may be in place of the T, seconds and their
// fraction may be missing, and the offset may be missing or be written +01:00, +0100, +01, UTC, or with the name of its zone
// behind it in brackets. The result is the time on a clock with that offset, in milliseconds.
func parseISO(text []byte) (ms, offset int64, has, ok bool) {
	const shortest = len("2006-01-02T15:04")
	if len(text) < shortest || text[4] != '-' || text[7] != '-' || text[13] != ':' || text[10]|0x20 != 't' && text[10] != ' ' {
		return 0, 0, false, false
	}
	p := digits{text: text, ok: true}
	year, month, day := p.number(0, 4, 1, 9999), p.number(5, 2, 1, 12), p.number(8, 2, 1, 31)
	hour, minute := p.number(11, 2, 0, 23), p.number(14, 2, 0, 59)
	var second, milli int64
	rest := text[shortest:]
	if len(rest) >= 3 && rest[0] == ':' {
		second, rest = p.number(shortest+1, 2, 0, 59), rest[3:]
		milli, rest = fraction(rest)
	}
	if day > 28 && day > daysOf(year, month) {
		return 0, 0, false, false
	}
	offset, has, ok = offsetOf(rest)
	return ((daysSince1970(year, month, day)*24+hour)*60+minute)*60_000 + second*1000 + milli, offset, has, ok && p.ok
}

// digits reads numbers of a fixed length in a text; ok becomes false at the first that is none, or out of its range.
type digits struct {
	text []byte
	ok   bool
}

func (p *digits) number(from, length int, least, most int64) (n int64) {
	for _, c := range p.text[from : from+length] {
		p.ok = p.ok && value.IsDigit(c)
		n = 10*n + int64(c-'0')
	}
	p.ok = p.ok && least <= n && n <= most
	return n
}

// fraction reads a fraction of a second in milliseconds, rounded down, and returns what follows it.
func fraction(text []byte) (milli int64, rest []byte) {
	if len(text) < 2 || text[0] != '.' && text[0] != ',' || !value.IsDigit(text[1]) {
		return 0, text
	}
	i := 1
	for scale := int64(100); i < len(text) && value.IsDigit(text[i]); i++ {
		milli += int64(text[i]-'0') * scale
		scale /= 10
	}
	return milli, text[i:]
}

// offsetOf reads the offset from UTC at the end of a text, in milliseconds.
func offsetOf(text []byte) (offset int64, has, ok bool) {
	if len(text) == 0 {
		return 0, false, true
	}
	if text[0] == ' ' {
		text = text[1:]
	}
	if len(text) > 0 && text[len(text)-1] == ']' { // of Java
		for i, c := range text {
			if c == '[' {
				text = text[:i]
				break
			}
		}
	}
	switch string(text) {
	case "Z", "z", "UTC":
		return 0, true, true
	}
	p := digits{text: text, ok: true}
	var minutes int64
	switch len(text) {
	case len("+01"):
	case len("+0100"):
		minutes = p.number(3, 2, 0, 59)
	case len("+01:00"):
		minutes = p.number(4, 2, 0, 59)
		p.ok = p.ok && text[3] == ':'
	default:
		return 0, false, false
	}
	offset = (p.number(1, 2, 0, 23)*60 + minutes) * 60_000
	if text[0] == '-' {
		offset = -offset
	}
	return offset, true, p.ok && (text[0] == '+' || text[0] == '-')
}

// daysOf returns the number of days of a month.
func daysOf(year, month int64) int64 {
	switch {
	case month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0):
		return 29
	case month == 2:
		return 28
	case month == 4, month == 6, month == 9, month == 11:
		return 30
	}
	return 31
}

// daysSince1970 is Howard Hinnant's days_from_civil: years begin in March.
func daysSince1970(year, month, day int64) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	return 365*year + year/4 - year/100 + year/400 + (153*(month-3)+2)/5 + day - 1 - 719468
}

// InZone returns the moment at which a clock of the form's zone shows a time, given as if it were one in UTC.
func (f *TimeForm) InZone(local int64) int64 {
	if f.Zone == nil {
		return local
	}
	return inZone(local, f.Zone)
}

// inZone returns the moment at which a clock of a zone shows a time, given as if it were one in UTC. Of two it is the earlier
// one. A time that the clock skips is as much later as was skipped.
func inZone(local int64, zone *time.Location) int64 {
	offset := func(ms int64) int64 {
		_, seconds := time.UnixMilli(ms).In(zone).Zone()
		return int64(seconds) * 1000
	}
	// Zones are less than a day from UTC, so these are the offsets before and after a change nearby.
	before := local - offset(local-dayMillis)
	if after := local - offset(local+dayMillis); after != before && offset(before) != local-before && offset(after) == local-after {
		return after
	}
	return before
}

// Append appends a moment in a way that this form reads exactly, and reports whether it is a text, which JSON quotes.
func (f TimeForm) Append(dst []byte, ms int64) (text []byte, quoted bool) {
	t := time.UnixMilli(ms).UTC()
	switch {
	case f.Unit == "datetime" && f.Zone == nil:
		return t.AppendFormat(dst, "2006-01-02 15:04:05.000"), true
	case f.Unit == "rfc3339",
		f.Unit == "datetime", // an hour that a zone has twice needs an offset
		f.Layout != "",       // which may lack that, or milliseconds
		f.Unit == "auto":     // of which small numbers are of another unit
		return t.AppendFormat(dst, time.RFC3339Nano), true
	case f.Unit == "s":
		return value.AppendDecimal(dst, ms, 3), false
	}
	dst = strconv.AppendInt(dst, ms, 10)
	switch f.Unit {
	case "us": // with an exponent, because 0000 is no number in JSON
		dst = append(dst, "e3"...)
	case "ns":
		dst = append(dst, "e6"...)
	}
	return dst, false
}

// JSON returns a moment in this form as JSON.
func (f TimeForm) JSON(ms int64) string {
	text, quoted := f.Append(nil, ms)
	if quoted {
		quoted, err := json.Marshal(string(text))
		if err != nil {
			panic(err) // texts always marshal
		}
		return string(quoted)
	}
	return string(text)
}

// describe says what a field takes, in a message.
func (f *TimeForm) describe() string {
	zone := "UTC"
	if f.Zone != nil {
		zone = f.Zone.String()
	}
	switch {
	case f.Layout != "" && HasOffset(f.Layout):
		return fmt.Sprintf("a text of the layout %q", f.Layout)
	case f.Layout != "":
		return fmt.Sprintf("a text of the layout %q, in %s", f.Layout, zone)
	case f.Unit == "":
		return "milliseconds since 1970, or RFC 3339"
	case f.Unit == "datetime":
		return "date and time in " + zone + ", such as 2026-01-31 23:59:59.999"
	case f.Unit == "auto":
		return "a number since 1970, or date and time in " + zone + ", such as 2026-01-31 23:59:59.999"
	}
	return f.Unit
}

// ofEvents says what the time of an event may be, in a message.
func (f *TimeForm) ofEvents() string {
	switch {
	case f.Layout != "" || f.Unit == "datetime" || f.Unit == "auto":
		return "a timestamp of the years 1 to 9999 (" + f.describe() + ")"
	case f.Unit == "rfc3339":
		return "an RFC 3339 timestamp of the years 1 to 9999, such as 2026-01-31T23:59:59.999Z"
	}
	return "a timestamp in " + f.Unit + " of the years 1 to 9999"
}
