package fetch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go/compress"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// decode returns "offset:value" of all records, the next offset and the error.
func decode(d *Decoder, p *PartitionData) (records []string, next int64, err error) {
	var r Record
	d.Reset(p)
	for {
		ok, err := d.Next(&r)
		if !ok {
			return records, d.NextOffset(), err
		}
		records = append(records, fmt.Sprintf("%d:%s", r.Offset, r.Value))
	}
}

func TestDecode(t *testing.T) {
	const transactional = attrTransactional
	truncated := func(batches ...testBatch) []byte {
		raw := encode(t, batches...)
		return raw[:len(raw)-1]
	}
	tests := []struct {
		name        string
		raw         []byte
		from        int64
		uncommitted bool
		aborted     []abortedTransaction
		want        []string
		next        int64
	}{
		{name: "nothing", from: 7, next: 7},
		{
			name: "two batches",
			raw:  encode(t, testBatch{base: 3, records: run("a", "b")}, testBatch{base: 5, records: run("c")}),
			from: 3, want: []string{"3:a", "4:b", "5:c"}, next: 6,
		},
		{
			name: "the position is inside a batch",
			raw:  encode(t, testBatch{base: 3, records: run("a", "b", "c")}),
			from: 4, want: []string{"4:b", "5:c"}, next: 6,
		},
		{
			name: "a whole batch lies before the position",
			raw:  encode(t, testBatch{base: 3, records: run("a", "b")}, testBatch{base: 5, records: run("c")}),
			from: 5, want: []string{"5:c"}, next: 6,
		},
		{
			name: "the last batch is cut",
			raw:  truncated(testBatch{base: 3, records: run("a", "b")}, testBatch{base: 5, records: run("c")}),
			from: 3, want: []string{"3:a", "4:b"}, next: 5,
		},
		{
			name: "the last batch is cut within its header",
			raw:  append(encode(t, testBatch{base: 3, records: run("a", "b")}), 0, 0, 0, 0, 0),
			from: 3, want: []string{"3:a", "4:b"}, next: 5,
		},
		{
			name: "the only batch is cut",
			raw:  truncated(testBatch{base: 3, records: run("a", "b")}),
			from: 3, next: 3,
		},
		{
			name: "compaction took the tail of a batch",
			raw:  encode(t, testBatch{base: 3, lastDelta: 9, records: run("a", "b")}),
			from: 3, want: []string{"3:a", "4:b"}, next: 13,
		},
		{
			name: "compaction took the middle of a batch",
			raw:  encode(t, testBatch{base: 3, records: []kmsg.Record{record(1, "a"), record(5, "b")}}),
			from: 3, want: []string{"4:a", "8:b"}, next: 9,
		},
		{
			name: "compaction took every record of a batch",
			raw: encode(t, testBatch{base: 3, records: run("a")},
				testBatch{base: 4, lastDelta: 5, codec: compress.Gzip}, testBatch{base: 10, records: run("b")}),
			from: 3, want: []string{"3:a", "10:b"}, next: 11,
		},
		{
			name: "only an empty batch",
			raw:  encode(t, testBatch{base: 4, lastDelta: 5}),
			from: 4, next: 10,
		},
		{
			name: "only control batches",
			raw:  encode(t, control(4, 1, markCommit), control(5, 2, markAbort)),
			from: 4, next: 6,
		},
		{
			name: "a control batch at the end",
			raw:  encode(t, testBatch{base: 3, attributes: transactional, producer: 1, records: run("a")}, control(4, 1, markCommit)),
			from: 3, want: []string{"3:a"}, next: 5,
		},
		{
			name: "interleaved transactions",
			raw: encode(
				t,
				testBatch{base: 0, attributes: transactional, producer: 1, records: run("a1")},
				testBatch{base: 1, attributes: transactional, producer: 2, records: run("c2")},
				testBatch{base: 2, producer: 3, records: run("n3")},
				testBatch{base: 3, producer: 1, records: run("outside of its transaction")},
				testBatch{base: 4, attributes: transactional, producer: 1, records: run("a1", "a1")},
				control(6, 1, markAbort),
				testBatch{base: 7, attributes: transactional, producer: 1, records: run("c1")},
				control(8, 2, markCommit),
				control(9, 1, markCommit),
				testBatch{base: 10, attributes: transactional, producer: 1, records: run("a1")},
				control(11, 1, markAbort),
			),
			// Not by offset, as the protocol does not promise it.
			aborted: []abortedTransaction{{1, 10}, {1, 0}},
			want:    []string{"1:c2", "2:n3", "3:outside of its transaction", "7:c1"}, next: 12,
		},
		{
			name: "an aborted transaction that began before the position",
			raw: encode(t, testBatch{base: 5, attributes: transactional, producer: 1, records: run("a", "b")},
				control(7, 1, markAbort), testBatch{base: 8, attributes: transactional, producer: 1, records: run("c")}),
			from: 6, aborted: []abortedTransaction{{1, 2}}, want: []string{"8:c"}, next: 9,
		},
		{
			name: "only aborted records",
			raw:  encode(t, testBatch{base: 5, attributes: transactional, producer: 1, records: run("a", "b")}),
			from: 5, aborted: []abortedTransaction{{1, 5}}, next: 7,
		},
		{
			name: "read uncommitted",
			raw: encode(t, testBatch{base: 5, attributes: transactional, producer: 1, records: run("a", "b")},
				control(7, 1, markAbort)),
			from: 5, uncommitted: true, aborted: []abortedTransaction{{1, 5}}, want: []string{"5:a", "6:b"}, next: 8,
		},
	}
	for _, codec := range []compress.Compression{compress.None, compress.Gzip, compress.Snappy, compress.Lz4, compress.Zstd} {
		long := strings.Repeat("0123456789", 1000)
		tests = append(tests, tests[0])
		test := &tests[len(tests)-1]
		test.name = "codec " + codec.String()
		test.raw = encode(t, testBatch{base: 2, codec: codec, records: run("a", long, "c")},
			testBatch{base: 5, codec: codec, records: run("d", long)})
		test.from, test.want, test.next = 2, []string{"2:a", "3:" + long, "4:c", "5:d", "6:" + long}, 7
	}
	bare := compress.SnappyCodec
	bare.Framing = 1
	tests = append(tests, tests[0])
	tests[len(tests)-1].name = "snappy without xerial framing"
	tests[len(tests)-1].raw = testBatch{codec: compress.Snappy, count: 2, lastDelta: 1,
		payload: deflate(t, &bare, encodeRecords(run("a", "b")))}.encode(t)
	tests[len(tests)-1].from, tests[len(tests)-1].want, tests[len(tests)-1].next = 0, []string{"0:a", "1:b"}, 2

	var reused Decoder
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := &PartitionData{Topic: "t", Offset: test.from, records: test.raw, aborted: test.aborted}
			if test.uncommitted {
				p.Isolation = ReadUncommitted
			}
			for _, d := range []*Decoder{&reused, {}} {
				got, next, err := decode(d, p)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("records (-want +got):\n%s", diff)
				}
				if next != test.next {
					t.Errorf("next offset %d, want %d", next, test.next)
				}
			}
			if at, _, err := scan(p); at.next != test.next || err != nil {
				t.Errorf("scan: next offset %d, want %d; error %v", at.next, test.next, err)
			}
		})
	}
}

func TestDecodeFields(t *testing.T) {
	records := []kmsg.Record{
		{TimestampDelta64: -5, Key: nil, Value: nil},
		{TimestampDelta64: 1 << 40, OffsetDelta: 1, Key: []byte{}, Value: []byte{}},
		{TimestampDelta64: 7, OffsetDelta: 2, Key: []byte("k"), Value: []byte("v"), Headers: []kmsg.Header{
			{Key: "a", Value: []byte("1")}, {Key: "b", Value: nil}, {Key: "a", Value: []byte{}}, {Key: "", Value: []byte("x")},
		}},
	}
	read := func(b testBatch) []Record {
		var d Decoder
		d.Reset(&PartitionData{records: b.encode(t)})
		var all []Record
		for {
			var r Record
			ok, err := d.Next(&r)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				return all
			}
			all = append(all, r)
		}
	}
	got := read(testBatch{timestamp: 1000, maxTime: 5000, records: records})
	want := []Record{
		{Offset: 0, Timestamp: 995},
		{Offset: 1, Timestamp: 1000 + 1<<40, Key: []byte{}, Value: []byte{}},
		{Offset: 2, Timestamp: 1007, Key: []byte("k"), Value: []byte("v")},
	}
	for i := range want {
		headers := got[i].Headers
		got[i].Headers = Headers{}
		if diff := cmp.Diff(want[i], got[i], cmp.AllowUnexported(Headers{})); diff != "" {
			t.Errorf("record %d (-want +got):\n%s", i, diff)
		}
		got[i].Headers = headers
	}
	var headers []string
	for k, v := range got[2].Headers.All() {
		headers = append(headers, fmt.Sprintf("%s=%s,%v", k, v, v == nil))
		if len(headers) == 4 {
			break
		}
	}
	if want := []string{"a=1,false", "b=,true", "a=,false", "=x,false"}; !slices.Equal(headers, want) {
		t.Errorf("headers %q, want %q", headers, want)
	}
	h := got[2].Headers
	if v, ok := h.Last("a"); v == nil || len(v) != 0 || !ok {
		t.Errorf("the last header a is %q, found %v; want an empty one", v, ok)
	}
	if v, ok := h.Last("b"); v != nil || !ok {
		t.Errorf("the last header b is %q, found %v; want null", v, ok)
	}
	if _, ok := h.Last("c"); ok {
		t.Error("a header c was found, want none")
	}
	if h.Len() != 4 || got[0].Headers.Len() != 0 {
		t.Errorf("%d and %d headers, want 4 and 0", h.Len(), got[0].Headers.Len())
	}
	for i, r := range read(testBatch{attributes: attrLogAppendTime, timestamp: 1000, maxTime: 5000, records: records}) {
		if r.Timestamp != 5000 {
			t.Errorf("LogAppendTime: record %d has timestamp %d, want 5000", i, r.Timestamp)
		}
	}
}

// Records of an earlier batch stay valid while later ones are inflated, until Reset.
func TestRecordsStayUntilReset(t *testing.T) {
	var batches []testBatch
	var want []string
	for i := range 40 {
		value := strings.Repeat(fmt.Sprint(i), 5000)
		want = append(want, value)
		codec := compress.Compression(i%4 + 1)
		batches = append(batches, testBatch{base: int64(i), codec: codec, records: run(value)})
	}
	raw := encode(t, batches...)
	var d Decoder
	for range 3 { // the first time the memory grows, later on it is enough
		d.Reset(&PartitionData{records: raw})
		var records []Record
		for {
			var r Record
			ok, err := d.Next(&r)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			records = append(records, r)
		}
		if len(records) != len(want) {
			t.Fatalf("%d records, want %d", len(records), len(want))
		}
		for i, r := range records {
			if string(r.Value) != want[i] {
				t.Fatalf("record %d was overwritten with %.20q…", i, r.Value)
			}
		}
	}
}
