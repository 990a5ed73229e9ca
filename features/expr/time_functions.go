package expr

import (
	"time"

	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/value"
)

// timeFunctions are parts of a timestamp, in UTC or a time zone of the IANA database:
//
//	hour(t[, zone])      hour of the day, 0 to 23
//	minute(t[, zone])    minute of the hour, 0 to 59
//	weekday(t[, zone])   day of the week, 1 (Monday) to 7
//	day(t[, zone])       day of the month, 1 to 31
//	month(t[, zone])     month of the year, 1 to 12
//	year(t[, zone])      year
//	date(t[, zone])      the day as text, such as 2026-01-31
var timeFunctions = map[string]function{
	"hour":    ofTime(value.Int, func(_ *frame, t time.Time) value.Value { return intOf(int64(t.Hour())) }),
	"minute":  ofTime(value.Int, func(_ *frame, t time.Time) value.Value { return intOf(int64(t.Minute())) }),
	"weekday": ofTime(value.Int, func(_ *frame, t time.Time) value.Value { return intOf(int64(t.Weekday()+6)%7 + 1) }),
	"day":     ofTime(value.Int, func(_ *frame, t time.Time) value.Value { return intOf(int64(t.Day())) }),
	"month":   ofTime(value.Int, func(_ *frame, t time.Time) value.Value { return intOf(int64(t.Month())) }),
	"year":    ofTime(value.Int, func(_ *frame, t time.Time) value.Value { return intOf(int64(t.Year())) }),
	"date": ofTime(value.String, func(f *frame, t time.Time) value.Value {
		start := len(f.text)
		f.text = t.AppendFormat(f.text, time.DateOnly)
		return f.held(start)
	}),
}

func ofTime(gives value.Type, do func(*frame, time.Time) value.Value) function {
	return function{
		arguments: "t[, zone]", optional: 1, takes: []value.Type{value.Timestamp, value.String},
		gives: func([]term) (value.Type, uint8, error) { return gives, 0, nil },
		prepare: func(_ *exprCompiler, args []term) (apply, error) {
			zone := time.UTC
			if len(args) > 1 {
				name, err := textLiteral(args, 1, "zone")
				if err != nil {
					return nil, err
				}
				if zone, err = window.ParseZone(name); err != nil {
					return nil, &argumentError{1, err.Error()}
				}
			}
			return func(f *frame, args []*value.Value) value.Value { return do(f, time.UnixMilli(args[0].Num).In(zone)) }, nil
		},
	}
}
