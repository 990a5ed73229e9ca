package tables

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// networks finds the networks that an address is in. They are a tree by the bits of addresses for each family, with a node only
// for each network and wherever two of them part (D. R. Morrison, PATRICIA, 1968).
type networks struct{ v4, v6 *network }

// network is a node of the tree.
type network struct {
	address
	key  string // of the rows; empty if it is only where others part
	next [2]*network
}

// address are the first bits of an address; the others are 0.
type address struct {
	high, low uint64
	bits      uint8
}

func addressOf(ip netip.Addr, bits int) (a address, v6 bool) {
	if ip.Is4() {
		four := ip.As4()
		return address{high: uint64(binary.BigEndian.Uint32(four[:])) << 32, bits: uint8(bits)}, false
	}
	sixteen := ip.As16()
	return address{binary.BigEndian.Uint64(sixteen[:8]), binary.BigEndian.Uint64(sixteen[8:]), uint8(bits)}, true
}

// common returns how many of the first bits two addresses have in common.
func (a address) common(b address) uint8 {
	n := bits.LeadingZeros64(a.high ^ b.high)
	if n == 64 {
		n += bits.LeadingZeros64(a.low ^ b.low)
	}
	return min(uint8(n), a.bits, b.bits)
}

func (a address) bit(n uint8) int {
	if n < 64 {
		return int(a.high >> (63 - n) & 1)
	}
	return int(a.low >> (127 - n) & 1)
}

func (n *networks) root(v6 bool) **network {
	if v6 {
		return &n.v6
	}
	return &n.v4
}

// add adds a network under a key.
func (n *networks) add(of netip.Prefix, key string) {
	a, v6 := addressOf(of.Addr(), of.Bits())
	at, added := n.root(v6), &network{address: a, key: key}
	for *at != nil {
		here := *at
		switch common := here.common(a); {
		case common == here.bits && common == a.bits:
			here.key = key
			return
		case common == here.bits:
			at = &here.next[a.bit(common)]
			continue
		case common == a.bits:
			added.next[here.bit(common)] = here
		default:
			parting := &network{address: address{here.high, here.low, common}}
			parting.next[here.bit(common)], parting.next[a.bit(common)] = here, added
			added = parting
		}
		break
	}
	*at = added
}

// remove removes a network.
func (n *networks) remove(of netip.Prefix) {
	a, v6 := addressOf(of.Addr(), of.Bits())
	root := n.root(v6)
	*root = (*root).without(a)
}

func (n *network) without(a address) *network {
	if n == nil || n.common(a) < n.bits {
		return n
	}
	if n.bits == a.bits {
		n.key = ""
	} else {
		next := &n.next[a.bit(n.bits)]
		*next = (*next).without(a)
	}
	switch {
	case n.key != "":
		return n
	case n.next[0] == nil:
		return n.next[1]
	case n.next[1] == nil:
		return n.next[0]
	}
	return n
}

// of appends the keys of the networks that an address is in, the narrowest last.
func (n *networks) of(ip netip.Addr, keys []string) []string {
	a, v6 := addressOf(ip, ip.BitLen())
	for at := *n.root(v6); at != nil && at.common(a) == at.bits; at = at.next[a.bit(at.bits)] {
		if at.key != "" {
			keys = append(keys, at.key)
		}
		if at.bits == a.bits {
			break
		}
	}
	return keys
}
