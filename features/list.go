package features

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"

	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/value"
)

// The fields of a list's entries, in their order.
const (
	ListValue = iota // the key
	ListUntil        // from when on the entry no longer counts; null for never
	ListWho
	ListWhy
)

// NewList makes the table of a list in a topic, without bounds. Its records are JSON objects with the members list, value,
// until in RFC 3339, who, why and removed; the key of a record is that of ListKey.
func NewList(name, topic string, of value.Type) *Table {
	match, err := expr.CompileMatch("list == " + strconv.Quote(name) + " and (removed ?? false) == false")
	if err != nil {
		panic(fmt.Sprintf("list %s: %v", name, err)) // a name has letters, digits and _
	}
	field := func(name string, of value.Type) record.Field {
		return record.Field{Name: name, Type: of, Path: []string{name}, MaxBytes: value.MaxText}
	}
	rows := &record.Stream{Name: name, Topic: topic, Format: record.JSON, Match: match, MaxFuture: math.MaxInt64, Fields: []record.Field{
		field("value", of), field("until", value.Timestamp), field("who", value.String), field("why", value.String),
	}}
	rows.Fields[ListValue].Required, rows.Fields[ListUntil].Form.Unit = true, "rfc3339"
	return &Table{Name: name, Rows: rows, Key: ListValue, Deletes: -1, Until: ListUntil, List: true}
}

// EntriesOfFile says how the entries of a list are read from a file that has columns with some of the names of a
// record's members, or from one whose lines may each have any, for nil: list, if it has entries of several; since, from
// when on an entry holds, which has always held without it; and removed. The last one is also the index of the field
// that is true for an entry that is removed; -1 if there is none.
func (t *Table) EntriesOfFile(columns []string) (entries *record.Stream, removed int) {
	has := func(column string) bool { return columns == nil || slices.Contains(columns, column) }
	rows := *t.Rows
	rows.Match, removed = nil, -1
	if has("list") {
		rows.Match, _ = expr.CompileMatch("list == nil or list == " + strconv.Quote(t.Name)) // as in NewList, a name is a word
	}
	if has("removed") {
		removed = len(rows.Fields)
		rows.Fields = append(slices.Clip(rows.Fields), record.Field{Name: "removed", Type: value.Bool, Path: []string{"removed"}})
	}
	if has("since") {
		rows.Timestamp = record.TimestampPath{Path: []string{"since"}, Form: record.TimeForm{Unit: "auto"}, Optional: true}
	}
	return &rows, removed
}

// ParseNetwork reads an IP network such as 10.0.0.0/8, or an address, which is the network of it alone. One of IPv4 within IPv6 is
// of IPv4.
func ParseNetwork(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		ip, notAddress := netip.ParseAddr(text)
		if notAddress != nil || ip.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q is neither a network such as 10.0.0.0/8 or 2001:db8::/32 nor an address", text)
		}
		p = netip.PrefixFrom(ip, ip.BitLen())
	}
	if mapped := netip.MustParsePrefix("::ffff:0:0/96"); p.Bits() >= mapped.Bits() && p.Addr().Is4In6() {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mapped.Bits())
	}
	if p.Masked() != p {
		return netip.Prefix{}, fmt.Errorf("%q has bits beyond its length: write %s", text, p.Masked())
	}
	return p, nil
}

// ListKey is the key of the records about a value of a list, so that compaction keeps the last one.
func ListKey(list, value string) string { return list + "/" + value }
