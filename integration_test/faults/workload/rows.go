package workload

import (
	"fmt"
	"time"

	"github.com/weir-stream/weir/features"
)

// rows is the share of rows of tables and entries of lists among the messages.
const rows = 0.1

// row makes a row of the table, or an entry of a list, that is inserted, changed or removed.
func (g *Generator) row() Message {
	m := Message{Topic: Lists, Timestamp: g.now}
	switch g.random.IntN(4) {
	case 0:
		m.Key, m.Value = g.entry("blocked", fmt.Sprintf("c%d", g.random.IntN(2*g.users)))
	case 1:
		a, b := g.random.IntN(g.networks), g.random.IntN(8)
		networks := []string{"10.0.0.0/16", fmt.Sprintf("10.0.%d.0/24", a), fmt.Sprintf("10.0.%d.4/30", a), fmt.Sprintf("10.0.%d.%d/32", a, b)}
		m.Key, m.Value = g.entry("hidden", networks[g.random.IntN(len(networks))])
	default:
		m.Topic = Merchants
		m.Key, m.Value = g.merchant()
	}
	return m
}

// merchant makes a record of the table, some without a key, some that delete the row of their key.
func (g *Generator) merchant() (key, value []byte) {
	shop := fmt.Sprintf("s%d", g.random.IntN(12))
	key = []byte(shop)
	value = fmt.Appendf(nil, `{"shop_id":%q,"risk":"r%d","limit":%d.%02d}`, shop, g.random.IntN(3), g.random.IntN(4000), g.random.IntN(100))
	switch n := g.random.IntN(40); {
	case n < 1:
		key = nil
	case n < 13:
		value = nil
	case n < 16:
		value = fmt.Appendf(nil, `{"shop_id":%q,"closed":true}`, shop)
	case n < 20:
		value = fmt.Appendf(nil, `{"shop_id":%q,"limit":1}`, shop)
	case n < 23:
		value = fmt.Appendf(nil, `{"shop_id":%q,"limit":"much"}`, shop) // it has no row
	}
	return key, value
}

// entry makes a record that adds a value to a list, with or without an end, or removes it.
func (g *Generator) entry(list, of string) (key, value []byte) {
	more := ""
	switch g.random.IntN(4) {
	case 0:
		more = `,"removed":true`
	case 1:
		end := time.UnixMilli(g.now + g.random.Int64N(int64(4*24*time.Hour/time.Millisecond)))
		more = fmt.Sprintf(`,"until":%q`, end.UTC().Format(time.RFC3339Nano))
	}
	return []byte(features.ListKey(list, of)), fmt.Appendf(nil, `{"list":%q,"value":%q,"why":"case %d"%s}`, list, of, g.now, more)
}
