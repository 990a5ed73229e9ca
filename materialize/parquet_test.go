package materialize

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/value"
)

// toParquet replays lines into a Parquet file with row groups of at most most bytes.
func toParquet(t *testing.T, r *features.Registry, stream, input string, most int, names ...string) *parquet.File {
	t.Helper()
	var out bytes.Buffer
	m := making{Registry: r, inputs: []text{{stream, "in.ndjson", input}}, stream: stream, names: names, parquet: &out, rowGroup: most}
	if _, _, err := m.run(t); err != nil {
		t.Fatal(err)
	}
	return open(t, out.Bytes())
}

func open(t *testing.T, written []byte) *parquet.File {
	t.Helper()
	file, err := parquet.OpenFile(bytes.NewReader(written), int64(len(written)))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// rowsOf returns the rows of a file in JSON.
func rowsOf(t *testing.T, file *parquet.File) (list []string) {
	t.Helper()
	rows := parquet.NewGenericReader[map[string]any](file, file.Schema())
	for range rows.NumRows() {
		row := []map[string]any{{}}
		if n, err := rows.Read(row); n != 1 {
			t.Fatal(err)
		}
		text, err := json.Marshal(row[0])
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(text))
	}
	return list
}

func TestParquet(t *testing.T) {
	r := load(t, `
streams:
  pay:
    topic: events
    timestamp: at
    id: "the, id.of it"
    fields:
      user: string
      device: string
      amount: {type: decimal, scale: 2}
      score: float
      n: int
      ok: bool
      seen: timestamp
      place: location
features:
  paid:      SUM(1h, pay, amount, user)
  events:    COUNT(1h, pay, user)
  devices:   SET(1h, pay, user, device)
  latest:    LAST_K(1h, pay, amount, user, k=2)
  places:    LAST_K(1h, pay, place, user, k=2)
  frequent:  TOP_K(1h, pay, device, user, k=2)
  amounts:   HISTOGRAM(1h, pay, amount, user, bins=[1, 10.5])
  vat:       {expr: paid * 0.175, default: -1}
  apart:     SUM(1h, pay, amount, user, per=device)
  none:      COUNT(1h, pay, user, where='n > 100', per=n)
  where:     LAST(1h, pay, place, user, per=device)
`)
	in := `{"at":1700000000000,"the, id":{"of it":7},"user":"u","device":"d1","amount":1.1,"score":0.5,"n":-3,"ok":true,"seen":1,"place":{"lat":1.5,"lon":-2}}
{"at":1700000000001,"the, id":{"of it":"b"},"user":"u","device":"d2","amount":-20,"ok":false}
{"at":1700000000002,"the, id":{"of it":"c"}}
`
	file := toParquet(t, r, "pay", in, rowGroupSize,
		"user", "amount", "score", "n", "ok", "seen", "place", "paid", "events", "devices", "latest", "places", "frequent", "amounts", "vat", "apart", "none", "where")
	if diff := cmp.Diff(wantSchema, file.Schema().String()); diff != "" {
		t.Errorf("schema (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantRows, rowsOf(t, file)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

const wantSchema = `message training_set {
	required binary the, id.of it (STRING);
	optional binary user (STRING);
	optional int64 amount (DECIMAL(18,2));
	optional double score;
	optional int64 n (INT(64,true));
	optional boolean ok;
	optional int64 seen (TIMESTAMP(isAdjustedToUTC=true,unit=MILLIS));
	optional group place {
		required double lat;
		required double lon;
	}
	optional int64 paid (DECIMAL(18,2));
	optional int64 events (INT(64,true));
	optional group devices (LIST) {
		repeated group list {
			optional binary element (STRING);
		}
	}
	optional group latest (LIST) {
		repeated group list {
			optional int64 element (DECIMAL(18,2));
		}
	}
	optional group places (LIST) {
		repeated group list {
			optional group element {
				required double lat;
				required double lon;
			}
		}
	}
	optional group frequent (LIST) {
		repeated group list {
			required group element {
				required int64 count (INT(64,true));
				optional binary value (STRING);
			}
		}
	}
	optional group amounts (LIST) {
		repeated group list {
			required group element {
				required int64 count (INT(64,true));
				optional int64 from (DECIMAL(18,2));
				optional int64 to (DECIMAL(18,2));
			}
		}
	}
	optional int64 vat (DECIMAL(18,5));
	optional group apart (MAP) {
		repeated group key_value {
			required binary key (STRING);
			optional int64 value (DECIMAL(18,2));
		}
	}
	optional group none (MAP) {
		repeated group key_value {
			required int64 key (INT(64,true));
			optional int64 value (INT(64,true));
		}
	}
	optional group where (MAP) {
		repeated group key_value {
			required binary key (STRING);
			optional group value {
				required double lat;
				required double lon;
			}
		}
	}
}`

// The library shows decimals in maps without their decimal point.
var wantRows = []string{
	`{"amount":1.1,"amounts":[{"count":0,"from":null,"to":1},{"count":1,"from":1,"to":10.5},{"count":0,"from":10.5,"to":null}],"apart":{"d1":110},` +
		`"devices":["d1"],"events":1,"frequent":[{"count":1,"value":"d1"}],"latest":[1.1],"n":-3,"none":{},"ok":true,"paid":1.1,` +
		`"place":{"lat":1.5,"lon":-2},"places":[{"lat":1.5,"lon":-2}],"score":0.5,"seen":1,"the, id.of it":"7","user":"u","vat":0.1925,"where":{"d1":{"Lat":1.5,"Lon":-2}}}`,
	`{"amount":-20,"amounts":[{"count":1,"from":null,"to":1},{"count":1,"from":1,"to":10.5},{"count":0,"from":10.5,"to":null}],"apart":{"d1":110,"d2":-2000},` +
		`"devices":["d1","d2"],"events":2,"frequent":[{"count":1,"value":"d1"},{"count":1,"value":"d2"}],"latest":[-20,1.1],"n":null,"none":{},"ok":false,"paid":-18.9,` +
		`"place":null,"places":[{"lat":1.5,"lon":-2}],"score":null,"seen":null,"the, id.of it":"b","user":"u","vat":-3.3075,"where":{"d1":{"Lat":1.5,"Lon":-2}}}`,
	`{"amount":null,"amounts":null,"apart":null,"devices":null,"events":null,"frequent":null,"latest":null,"n":null,"none":null,"ok":null,"paid":null,` +
		`"place":null,"places":null,"score":null,"seen":null,"the, id.of it":"c","user":null,"vat":null,"where":null}`,
}

// A Parquet file with many row groups equals the CSV of the same events, value by value.
func TestParquetEqualsCSV(t *testing.T) {
	r := load(t, randomDefinitions)
	in, _ := randomEvents(t)
	text, _, err := materialize(t, r, "pay", "ndjson", in)
	if err != nil {
		t.Fatal(err)
	}
	want, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	file := toParquet(t, r, "pay", in, 1<<15)
	if n := len(file.RowGroups()); n < 5 || n > 50 {
		t.Errorf("%d row groups, want 5 to 50", n)
	}
	var got [][]string
	header := []string{}
	for _, c := range file.Root().Columns() {
		header = append(header, c.Name())
	}
	got = append(got, header)
	for _, group := range file.RowGroups() {
		rows := group.Rows()
		buffer := make([]parquet.Row, group.NumRows())
		if n, err := rows.ReadRows(buffer); n != len(buffer) {
			t.Fatal(n, err)
		}
		for _, row := range buffer {
			cells := make([]string, len(row))
			for i, v := range row {
				cells[i] = asInCSV(v, file.Root().Columns()[i].Type().LogicalType())
			}
			got = append(got, cells)
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-csv +parquet):\n%s", diff)
	}
}

// asInCSV formats a value of a Parquet file as in a CSV.
func asInCSV(v parquet.Value, t *format.LogicalType) string {
	var decimal *format.DecimalType
	if t != nil {
		decimal, _ = t.Value.(*format.DecimalType)
	}
	switch {
	case v.IsNull():
		return ""
	case decimal != nil:
		return string(value.AppendDecimal(nil, v.Int64(), uint8(decimal.Scale)))
	case v.Kind() == parquet.Double:
		return string((&value.Value{Type: value.Float, Flt: v.Double()}).AppendText(nil))
	default:
		return v.String()
	}
}

// Decimals are floats or texts, wherever they are in a column, for libraries that take no others.
func TestDecimalsInParquet(t *testing.T) {
	r := load(t, `
streams:
  pay:
    topic: events
    timestamp: at
    id: id
    fields: {user: string, amount: {type: decimal, scale: 2}}
features:
  paid:   SUM(1h, pay, amount, user)
  latest: LAST_K(1h, pay, amount, user, k=2)
  apart:  COUNT(1h, pay, user, per=amount)
`)
	const in = `{"at":1700000000000,"id":"a","user":"u","amount":92233720368547758.07}` + "\n" + `{"at":1700000000001,"id":"b","user":"u","amount":-1.10}` + "\n" +
		`{"at":1700000000002,"id":"c","user":"v"}` + "\n"
	for decimals, want := range map[Decimals][]string{
		FloatDecimals: {"optional double amount", "optional double paid", "optional double element",
			`"amount":-1.1,`, `"paid":92233720368547760`, `"latest":[-1.1,92233720368547760]`, `"amount":null`},
		TextDecimals: {"optional binary amount (STRING)", "optional binary paid (STRING)", "optional binary element (STRING)", "required binary key (STRING)",
			`"amount":"-1.1",`, `"paid":"92233720368547756.97"`, `"latest":["-1.1","92233720368547758.07"]`, `"apart":{"-1.1":1,"92233720368547758.07":1}`, `"amount":null`},
	} {
		var out bytes.Buffer
		m := making{Registry: r, inputs: []text{{"pay", "in.ndjson", in}}, stream: "pay", names: []string{"amount", "latest", "paid"}, parquet: &out, decimals: decimals}
		if decimals == TextDecimals { // the library reads no floats as keys of a map
			m.names = append(m.names, "apart")
		}
		if _, _, err := m.run(t); err != nil {
			t.Fatal(err)
		}
		file := open(t, out.Bytes())
		got := file.Schema().String() + strings.Join(rowsOf(t, file), "\n")
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("decimals as %s: no %s in\n%s", decimals, part, got)
			}
		}
	}
}

// The rows of events have their time and the keys of the features, so that they can be split by time, and joined; and a
// field that is asked for by name only once. Together they are a spine.
func TestTimeAndKeysOfEvents(t *testing.T) {
	r := load(t, `
streams:
  pay: {topic: events, timestamp: when, id: id, fields: {user: string, device: string, shop: string, at: int}}
features:
  by_user:   COUNT(1h, pay, user)
  by_both:   COUNT(1h, pay, device, user)
  by_device: {expr: by_one + 0}
  by_one:    COUNT(1h, pay, device)
`)
	const in = "id,when,user,device,shop,at\na,1769853600500,u,d,s,7\nb,1769853601000,u,,s,\n"
	for names, want := range map[string]string{
		"":               "id,at,device,user,by_both,by_device,by_one,by_user\na,1769853600500,d,u,1,1,1,1\nb,1769853601000,,u,,,,2\n",
		"by_device":      "id,at,device,by_device\na,1769853600500,d,1\nb,1769853601000,,\n",
		"user,by_user":   "id,at,user,by_user\na,1769853600500,u,1\nb,1769853601000,u,2\n",
		"shop":           "id,at,shop\na,1769853600500,s\nb,1769853601000,s\n",
		"at,by_user":     "id,user,at,by_user\na,u,7,1\nb,u,,2\n",
		"by_user,device": "id,at,user,by_user,device\na,1769853600500,u,1,d\nb,1769853601000,u,2,\n",
	} {
		m := making{Registry: r, inputs: []text{{"pay", "in.csv", in}}, stream: "pay", whole: true}
		if names != "" {
			m.names = strings.Split(names, ",")
		}
		got, _, err := m.run(t)
		if err != nil || got != want {
			t.Errorf("columns %q: error %v, got\n%s\nwant\n%s", names, err, got, want)
		}
	}
}

// A text of the spine that is not UTF-8 is passed on in a CSV, and refused in Parquet.
func TestTextsThatAreNotUTF8(t *testing.T) {
	m := shopMaking(t)
	m.names, m.spine = []string{"logins"}, "at,user,note\n1700000003000,u,caf\xc3\xa9\n1700000004000,u,caf\xe9\n"
	got, _, err := m.run(t)
	if want := "at,user,note,logins\n1700000003000,u,caf\xc3\xa9,2\n1700000004000,u,caf\xe9,2\n"; err != nil || got != want {
		t.Errorf("error %v, got %q, want %q", err, got, want)
	}
	m.parquet = &bytes.Buffer{}
	_, _, err = m.run(t)
	if want := "spine.csv:3: column note: the text is not valid UTF-8, as a string in Parquet must be; convert the file, or write a .csv"; fmt.Sprint(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// A decimal or an integer that does not fit Parquet's type is refused.
func TestParquetNumbers(t *testing.T) {
	for _, c := range []struct {
		v     value.Value
		scale uint8
		want  string
	}{
		{value.Value{Type: value.Decimal, Scale: 2, Num: -150}, 4, "-15000"},
		{value.Value{Type: value.Int, Num: 3}, 2, "300"},
		{value.Value{Type: value.Decimal, Scale: 2, Num: 999_999_999_999_999_999}, 2, "999999999999999999"},
		{value.Value{Type: value.Decimal, Scale: 2, Num: -1_000_000_000_000_000_000}, 2,
			"-10000000000000000 has more than the 18 digits of a decimal in Parquet, 2 of them after the decimal point; write decimals as float or string"},
		{value.Value{Type: value.Decimal, Num: 1_000_000_000_000_000_000}, 1,
			"1000000000000000000 has more than the 18 digits of a decimal in Parquet, 1 of them after the decimal point; write decimals as float or string"},
		{value.Value{Type: value.Int, Num: math.MinInt64}, 18,
			"-9223372036854775808 has more than the 18 digits of a decimal in Parquet, 18 of them after the decimal point; write decimals as float or string"},
		{value.Value{Type: value.Decimal, Scale: 2, Num: 100, Carry: 1}, 2,
			"184467440737095517.16 has more than the 18 digits of a decimal in Parquet, 2 of them after the decimal point; write decimals as float or string"},
		{value.Value{Type: value.Int, Num: math.MinInt64}, 0, "-9223372036854775808"},
		{value.Value{Type: value.Int, Num: 0, Carry: 1}, 0,
			"18446744073709551616 does not fit into the 64 bits of an integer in Parquet; write a .csv"},
	} {
		l := parquetLeaf{typ: c.v.Type, scale: c.scale}
		if c.scale > 0 {
			l.typ = value.Decimal
		}
		v, err := l.value(c.v)
		got := v.String()
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s at scale %d: %s, want %s", c.v.AppendText(nil), c.scale, got, c.want)
		}
	}
}
