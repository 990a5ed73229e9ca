package source

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/weir-stream/weir/internal/testkit/defined"
)

// readParquet reads a file to its end and returns its error.
func readParquet(content []byte) error {
	table, err := newParquet("in.parquet", bytes.NewReader(content), int64(len(content)))
	for err == nil {
		_, err = table.Next()
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// A Parquet file with one damaged byte gives an error that names the row, or says that it is not a
// Parquet file; or it is read, with another value.
func TestDamagedParquet(t *testing.T) {
	located, footers := 0, 0
	for _, name := range []string{"types.parquet", "hive.parquet"} {
		whole, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		pages := len(whole) - 8 - int(binary.LittleEndian.Uint32(whole[len(whole)-8:]))
		for at := 0; at < len(whole); at += 3 {
			content := bytes.Clone(whole)
			content[at] ^= 0xff
			err := readParquet(content)
			line, isLine := errors.AsType[*lineError](err)
			switch {
			case err == nil:
			case isLine && line.Line >= 1 && line.Line <= 3 && strings.Contains(err.Error(), "column "):
				located++
			case strings.HasPrefix(err.Error(), "in.parquet: ") && (at >= pages || at < 4):
				footers++
			default:
				t.Errorf("%s, byte %d of %d: the error does not locate the damage: %v", name, at, len(whole), err)
			}
		}
	}
	if located < 100 || footers < 100 {
		t.Errorf("%d files were damaged in a page and %d in the footer, want at least 100 of each", located, footers)
	}
}

// A footer that claims to be longer than the file allocates no memory.
func TestParquetWithTooLongAFooter(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join("testdata", "hive.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint32(whole[len(whole)-8:], 3<<30)
	err = readParquet(whole)
	if want := "in.parquet: this is not a Parquet file, or not all of one: its footer would have 3221225472 bytes, and the file has 660"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// An empty text is not null, even as the first of a column; a column of nulls only is null; and a column of a type that
// cannot be read does not matter unless it is read.
func TestRareParquetColumns(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("testdata", "rare.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	table, err := newParquet("rare.parquet", bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	table.Select([]int{0, 1})
	for _, want := range []string{"", "", "x", ""} {
		cells, err := table.Next()
		if err != nil {
			t.Fatal(err)
		}
		if text := cells[0]; text.Type != String || string(text.Text) != want || cells[1].Type != Null {
			t.Errorf("got %+v, want the text %q and null", cells[:2], want)
		}
	}
	const want = "in.parquet: row 1: column fixed: values of type FIXED_LEN_BYTE_ARRAY(2) cannot be read"
	if err := readParquet(content); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Whole numbers in columns of floats and decimals can be identities, however many digits they have.
func TestWholeNumbersAreIdentities(t *testing.T) {
	type row struct {
		ID   float64  `parquet:"id"`
		At   int64    `parquet:"at"`
		User *float64 `parquet:"user,optional"`
		Card [9]byte  `parquet:"card,decimal(0:20)"`
	}
	user, card := 1234567.0, [9]byte{0, 0xab, 0x54, 0xa9, 0x8c, 0xeb, 0x1f, 0x0a, 0xd2}
	var out bytes.Buffer
	if err := parquet.Write(&out, []row{{1e15, 1000, &user, card}, {16777217, 2000, nil, [9]byte{8: 7}}}); err != nil {
		t.Fatal(err)
	}
	r := defined.Registry(t, `
streams: {pay: {topic: payments, timestamp: at, id: id, fields: {user: string, card: string}}}
features: {}
`)
	got, err := eventsOf(t, write(t, "in.parquet", out.Bytes()), r.Streams[0])
	if want := []string{"1: 1000000000000000 1000 1234567 12345678901234567890", "2: 16777217 2000  7"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("error %v, got %q, want %q", err, got, want)
	}
}

// A timestamp without a time zone, and a date, are in that of the stream or the field, as the same texts of its topic
// are. Those with a zone are moments.
func TestLocalTimesOfParquet(t *testing.T) {
	r := defined.Registry(t, `
streams:
  s:
    topic: t
    timestamp: {path: at, unit: datetime, tz: Europe/Berlin}
    id: id
    fields: {there: {type: timestamp, unit: datetime, tz: America/New_York}, utc: {type: timestamp, unit: datetime}, day: {type: timestamp, layout: "02.01.2006", tz: Europe/Berlin}}
features: {}
`)
	local := func(isLocal bool) parquet.Node { return parquet.TimestampAdjusted(parquet.Microsecond, !isLocal) }
	day, err := time.Parse(time.DateOnly, "2026-06-30")
	if err != nil {
		t.Fatal(err)
	}
	// Clocks in Berlin are set forward on March 29, and back on October 25.
	for _, text := range []string{"2026-01-31 00:30:00", "2026-03-29 02:30:00", "2026-07-01 12:00:00.123", "2026-10-25 02:30:00"} {
		at, err := time.Parse(time.DateTime, text)
		if err != nil {
			t.Fatal(err)
		}
		us := at.UnixMicro()
		for _, c := range []struct {
			isLocal bool
			csv     string
		}{
			{true, "at,id,there,utc,day\n" + text + ",a," + text + "," + text + ",30.06.2026\n"},
			{false, "at,id,there,utc,day\n" + text + "Z,a," + text + "Z," + text + "Z,30.06.2026\n"},
		} {
			group := parquet.Group{"at": local(c.isLocal), "day": parquet.Date(), "id": parquet.String(), "there": local(c.isLocal), "utc": local(c.isLocal)}
			var out bytes.Buffer
			w := parquet.NewGenericWriter[any](&out, parquet.NewSchema("s", group))
			_, err := w.WriteRows([]parquet.Row{{
				parquet.Int64Value(us).Level(0, 0, 0), parquet.Int32Value(int32(day.Unix()/86400)).Level(0, 0, 1), parquet.ByteArrayValue([]byte("a")).Level(0, 0, 2),
				parquet.Int64Value(us).Level(0, 0, 3), parquet.Int64Value(us).Level(0, 0, 4),
			}})
			if err := errors.Join(err, w.Close()); err != nil {
				t.Fatal(err)
			}
			got, err := eventsOf(t, write(t, "in.parquet", out.Bytes()), r.Streams[0])
			want, wrong := eventsOf(t, write(t, "in.csv", []byte(c.csv)), r.Streams[0])
			trim := func(all []string) string { _, event, _ := strings.Cut(strings.Join(all, ""), ": "); return event }
			if err := errors.Join(err, wrong); err != nil || len(got) != 1 || trim(got) != trim(want) {
				t.Errorf("%s, local %v: error %v, got %q, want %q as of a CSV", text, c.isLocal, err, got, want)
			}
		}
	}
}
