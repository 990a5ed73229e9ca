package tables

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// drawNetwork draws networks that often contain each other.
func drawNetwork(t *rapid.T) netip.Prefix {
	var ip netip.Addr
	if rapid.Bool().Draw(t, "v6") {
		var b [16]byte
		for _, i := range []int{0, 7, 8, 15} {
			b[i] = rapid.SampledFrom([]byte{0, 1, 128, 255}).Draw(t, "byte")
		}
		ip = netip.AddrFrom16(b).Unmap()
	} else {
		var b [4]byte
		for i := range b {
			b[i] = rapid.SampledFrom([]byte{0, 1, 128, 255}).Draw(t, "byte")
		}
		ip = netip.AddrFrom4(b)
	}
	p, _ := ip.Prefix(rapid.IntRange(0, ip.BitLen()).Draw(t, "bits"))
	return p
}

// An address is in the networks that contain it, after networks were added, again and removed.
func TestNetworksOfAnAddress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tree networks
		held := map[netip.Prefix]bool{}
		for range rapid.IntRange(0, 40).Draw(t, "changes") {
			p := drawNetwork(t)
			if len(held) > 0 && rapid.IntRange(0, 2).Draw(t, "what") == 0 {
				if rapid.Bool().Draw(t, "one that is there") {
					all := make([]netip.Prefix, 0, len(held))
					for q := range held {
						all = append(all, q)
					}
					slices.SortFunc(all, netip.Prefix.Compare)
					p = rapid.SampledFrom(all).Draw(t, "which")
				}
				tree.remove(p)
				delete(held, p)
			} else {
				tree.add(p, p.String())
				held[p] = true
			}
			ip := drawNetwork(t).Addr()
			var want []string
			for bits := range ip.BitLen() + 1 {
				if p, _ := ip.Prefix(bits); held[p] {
					want = append(want, p.String())
				}
			}
			if diff := cmp.Diff(want, tree.of(ip, nil)); diff != "" {
				t.Fatalf("networks of %s (-want +got):\n%s", ip, diff)
			}
		}
		for p := range held {
			tree.remove(p)
		}
		if tree.v4 != nil || tree.v6 != nil {
			t.Fatal("nodes are left without networks")
		}
	})
}

// listed makes the contents of a list of networks, with entries such as "10.0.0.0/8" or "10.0.0.0/8 until 500".
func listed(t testing.TB, entries ...string) *Contents {
	t.Helper()
	list := features.NewList("vpn", "lists", value.String)
	list.Networks, list.MaxRows, list.MaxBytes = true, 1_000_000, 1<<30
	c := New(list)
	for i, entry := range entries {
		var network string
		var until int64
		n, _ := fmt.Sscanf(entry, "%s until %d", &network, &until)
		more := ""
		if n > 1 {
			more = fmt.Sprintf(`,"until":"1970-01-01T00:00:%02dZ"`, until)
		}
		bad, err := c.Take(&record.Record{
			Key: []byte(features.ListKey("vpn", network)), Value: fmt.Appendf(nil, `{"list":"vpn","value":%q%s}`, network, more),
			Timestamp: int64(i), Partition: state.Partition{Topic: "lists"},
		})
		if bad != nil || err != nil {
			t.Fatal(bad, err)
		}
	}
	return c
}

// The narrowest network that counts answers for an address, however that is written.
func TestRowOfANetwork(t *testing.T) {
	c := listed(t, "10.0.0.0/8", "10.1.0.0/16 until 5", "10.1.2.3", "2001:db8::/32", "::ffff:192.168.0.0/112", "0.0.0.0/32")
	for _, test := range []struct {
		ip, want string
		at       int64
	}{
		{"10.9.9.9", "10.0.0.0/8", 0},
		{"10.1.9.9", "10.1.0.0/16", 4999},
		{"10.1.9.9", "10.0.0.0/8", 5000}, // what has ended hides nothing
		{"10.1.2.3", "10.1.2.3/32", 0},
		{" 10.1.2.3:443", "10.1.2.3/32", 0},
		{"10.1.2.3, 11.1.1.1", "10.1.2.3/32", 0},
		{strings.Repeat(" ", 300) + "10.1.2.3", "10.1.2.3/32", 0}, // shortened
		{"10.1.2.3" + strings.Repeat(" ", 300) + ", 11.1.1.1", "10.1.2.3/32", 0},
		{"10.1.2.3" + strings.Repeat(", 11.1.1.1", 40), "10.1.2.3/32", 0},
		{"[::ffff:10.1.2.3]:443" + strings.Repeat(" ", 300), "10.1.2.3/32", 0},
		{strings.Repeat(" ", 300) + "11.0.0.1", "", 0},
		{strings.Repeat("1", 300), "", 0},
		{"::ffff:10.1.2.3", "10.1.2.3/32", 0},
		{"[2001:db8::1]:80", "2001:db8::/32", 0},
		{"192.168.7.7", "192.168.0.0/16", 0},
		{"0.0.0.0", "0.0.0.0/32", 0},
		{"11.0.0.1", "", 0},
		{"2001:db9::1", "", 0},
		{"10.0.0.0/8", "", 0},
		{"garbage", "", 0},
		{"", "", 0},
	} {
		got := ""
		key := state.AppendEntity(nil, true, value.Value{Type: value.String, Str: []byte(test.ip)})
		if row := c.Find(string(key), test.at); row != nil {
			got = string(row.Values[features.ListValue].Str)
		}
		if got != test.want {
			t.Errorf("%q at %d is in %q, want %q", test.ip, test.at, got, test.want)
		}
	}
	if n := len(c.All(0)); n != 6 {
		t.Errorf("%d entries are listed, want 6", n)
	}
}

// Entries that are no networks are bad records, and entries that are removed answer no more.
func TestNetworksOfRecords(t *testing.T) {
	c := listed(t, "10.0.0.0/8")
	take := func(value string) string {
		bad, err := c.Take(&record.Record{Key: []byte("vpn/10.0.0.0/8"), Value: []byte(value), Partition: state.Partition{Topic: "lists"}})
		if err != nil {
			t.Fatal(err)
		}
		if bad == nil {
			return ""
		}
		return bad.Error()
	}
	if got, want := take(`{"list":"vpn","value":"10.0.0.1/8"}`), `value: "10.0.0.1/8" has bits beyond its length: write 10.0.0.0/8`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if c.Find("10.1.1.1", 0) != nil {
		t.Error("the record before a bad one still answers")
	}
	for range 2 {
		take(`{"list":"vpn","value":"10.0.0.0/8"}`)
		if c.Find("10.1.1.1", 0) == nil {
			t.Error("a network that was added again does not answer")
		}
		take(`{"list":"vpn","value":"10.0.0.0/8","removed":true}`)
		if c.Find("10.1.1.1", 0) != nil {
			t.Error("a network that was removed answers")
		}
	}
}

func BenchmarkFindNetwork(b *testing.B) {
	var entries, asked []string
	for i := range 100_000 {
		entries = append(entries, netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(i >> 9), byte(i >> 1), byte(i << 7), 0}), 17+i%8).Masked().String())
		asked = append(asked, netip.AddrFrom4([4]byte{byte(i * 7), byte(i * 13), byte(i * 31), byte(i)}).String())
	}
	c := listed(b, entries...)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		c.Find(asked[i%len(asked)], 0)
	}
}
