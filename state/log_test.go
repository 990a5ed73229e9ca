package state

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/value"
)

var logColumns = []Column{
	NewColumn(1, value.Null, 0), NewColumn(2, value.String, 0), NewColumn(3, value.Int, 0), NewColumn(4, value.Float, 0),
	NewColumn(5, value.Decimal, 2), NewColumn(6, value.Bool, 0), NewColumn(7, value.Timestamp, 0), NewColumn(8, value.Location, 0),
}

type logEvent struct {
	time   int64
	values []value.Value // by column; nil Type for absent
	has    []bool
}

func drawLogEvent(t *rapid.T) logEvent {
	e := logEvent{time: rapid.Int64Range(-1<<46, 1<<46).Draw(t, "time")}
	for _, c := range logColumns {
		v := value.Value{Type: c.Type, Scale: c.Scale}
		switch c.Type {
		case value.String:
			v.Str = []byte(rapid.StringN(0, 20, 300).Draw(t, "text"))
		case value.Float:
			v.Flt = rapid.Float64().Draw(t, "float")
		case value.Location:
			v.Flt, v.Lon = rapid.Float64Range(-90, 90).Draw(t, "lat"), rapid.Float64Range(-180, 180).Draw(t, "lon")
		case value.Null:
		default:
			v.Num = rapid.Int64().Draw(t, "num")
		}
		e.values = append(e.values, v)
		e.has = append(e.has, rapid.Bool().Draw(t, "has"))
	}
	return e
}

// A log that was appended is read back with exactly the columns that each record has.
func TestLogRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOfN(rapid.Custom(drawLogEvent), 0, 8).Draw(t, "events")
		log := []byte(LogHeader)
		for _, e := range events {
			record := AppendLogTime(nil, e.time)
			for i, c := range logColumns {
				if e.has[i] {
					record = AppendLogColumn(record, c, e.values[i])
				} else if c.Type != value.Null {
					record = AppendLogColumn(record, c, value.Value{})
				}
			}
			log = AppendLogRecord(log, record)
		}
		n := 0
		err := Log(log).Records(func(r LogRecord) bool {
			e := events[n]
			n++
			if r.Time != e.time {
				t.Fatalf("time %d, want %d", r.Time, e.time)
			}
			for i, c := range logColumns {
				var v value.Value
				ok, err := r.Column(c, &v)
				if err != nil || ok != e.has[i] {
					t.Fatalf("column %d: found %v, error %v; want %v", i, ok, err, e.has[i])
				}
				if ok && !bytes.Equal(v.AppendText(nil), e.values[i].AppendText(nil)) {
					t.Fatalf("column %d: %+v, want %+v", i, v, e.values[i])
				}
			}
			return true
		})
		if err != nil || n != len(events) {
			t.Fatalf("%d of %d records, error %v", n, len(events), err)
		}
	})
}

func TestLogCutOff(t *testing.T) {
	if _, ok := Log(LogHeader).CutOff(); ok {
		t.Error("a new log reports that something was cut off")
	}
	if _, ok := Log(nil).CutOff(); ok {
		t.Error("an empty log reports that something was cut off")
	}
	log := append([]byte{logVersion}, AppendLogTime(nil, 1532496076032)...)
	if at, ok := Log(log).CutOff(); !ok || at != 1532496076032 {
		t.Errorf("cut off at %d, %v; want 1532496076032", at, ok)
	}
}

// A log tells the last time of an event from all others, and not the next one.
func TestLastEventTime(t *testing.T) {
	for at, want := range map[int64]bool{LastEventTime: true, LastEventTime + 1: false} {
		log := append([]byte{logVersion}, AppendLogTime(nil, at)...)
		if got, _ := Log(log).CutOff(); (got == at) != want {
			t.Errorf("a log with the time %d has %d", at, got)
		}
	}
}

func TestLogDamaged(t *testing.T) {
	record := AppendLogRecord(nil, AppendLogColumn(AppendLogTime(nil, 5), logColumns[1], value.Value{Type: value.String, Str: []byte("abc")}))
	for name, c := range map[string]struct{ log, want string }{
		"short header":          {LogHeader[:3], "the log is damaged"},
		"other version":         {"\x07" + LogHeader[1:], "the log is of version 7, and this program reads version 1"},
		"length too great":      {LogHeader + "\x7f", "the log is damaged"},
		"record too short":      {LogHeader + "\x01\x00", "the log is damaged"},
		"record cut":            {LogHeader + string(record[:len(record)-1]), "the log is damaged"},
		"length of no end":      {LogHeader + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "the log is damaged"},
		"column of no encoding": {LogHeader + string(AppendLogRecord(nil, append(AppendLogTime(nil, 5), 0, 0, 7))), "the log is damaged"},
		"tag cut":               {LogHeader + string(AppendLogRecord(nil, append(AppendLogTime(nil, 5), 0))), "the log is damaged"},
	} {
		var columnErr error
		err := Log(c.log).Records(func(r LogRecord) bool {
			_, columnErr = r.Column(logColumns[0], new(value.Value))
			return true
		})
		if err == nil {
			err = columnErr
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: error %v, want %s", name, err, c.want)
		}
	}
}

// Reading a log of any bytes neither panics nor reads beyond its end.
func FuzzLog(f *testing.F) {
	f.Add([]byte(LogHeader))
	f.Add([]byte("\x01000000\b00000000")) // a tag is cut
	record := AppendLogTime(nil, 5)
	for _, c := range logColumns {
		record = AppendLogColumn(record, c, value.Value{Type: value.String, Num: 7, Flt: math.Pi, Str: []byte("abc")})
	}
	f.Add(AppendLogRecord([]byte(LogHeader), record))
	f.Fuzz(func(t *testing.T, data []byte) {
		whole := bytes.Clone(data)
		_ = Log(data).Records(func(r LogRecord) bool {
			for _, c := range logColumns {
				v := value.Value{Num: 1}
				if ok, err := r.Column(c, &v); err != nil && (ok || !reflect.DeepEqual(v, value.Value{})) {
					t.Fatalf("a value %+v with error %v", v, err)
				}
			}
			return true
		})
		if !bytes.Equal(whole, data) {
			t.Fatal("reading changed the log")
		}
	})
}
