package expr

import (
	"bytes"
	"net/netip"
	"unsafe"

	"github.com/weir-stream/weir/value"
)

// networkFunctions are those of IP addresses. They take what proxies write: the first of a list with commas, with a port or
// in brackets. All are null for what is not an address. An IPv4 address within IPv6 (::ffff:10.1.2.3) is an IPv4 address.
//
//	ip(s)              the address in its shortest form
//	cidr(s, v4[, v6])  its network of so many bits, for IPv4 and for IPv6 (64 if it is left out):
//	                   cidr("10.1.2.3", 24) is "10.1.2.0/24"
//	is_private(s)      whether it is not of the public Internet: private, shared (100.64.0.0/10), loopback, link-local or
//	                   unspecified
var networkFunctions = map[string]function{
	"ip":         of("s", value.String, address, value.String),
	"cidr":       {arguments: "s, v4[, v6]", optional: 2, takes: []value.Type{value.String, value.Int, value.Int}, gives: givesText, prepare: prepareCIDR},
	"is_private": of("s", value.Bool, isPrivate, value.String),
}

func parseAddress(v *value.Value) (netip.Addr, bool) { return ParseAddress(v.Str) }

// ParseAddress reads the first IP address of a text, as proxies write it: with a port or in brackets. One of IPv4 within IPv6 is of
// IPv4.
func ParseAddress(text []byte) (netip.Addr, bool) {
	s, _, _ := bytes.Cut(text, []byte{','})
	s = bytes.TrimSpace(s)
	if port := bytes.LastIndexByte(s, ':'); port >= 0 && (bytes.Count(s, []byte{':'}) == 1 || s[0] == '[' && s[port-1] == ']') {
		if !isPort(s[port+1:]) {
			return netip.Addr{}, false
		}
		s = s[:port]
	}
	if n := len(s); n > 1 && s[0] == '[' && s[n-1] == ']' {
		if s = s[1 : n-1]; bytes.IndexByte(s, ':') < 0 {
			return netip.Addr{}, false // only IPv6 is in brackets
		}
	}
	ip, err := netip.ParseAddr(unsafe.String(unsafe.SliceData(s), len(s)))
	if err != nil || ip.Zone() != "" {
		return netip.Addr{}, false
	}
	return ip.Unmap(), true
}

func isPort(s []byte) bool {
	n := 0
	for _, c := range s {
		if !value.IsDigit(c) {
			return false
		}
		n = min(10*n+int(c-'0'), 1<<16)
	}
	return len(s) > 0 && n < 1<<16
}

func address(f *frame, args []*value.Value) value.Value {
	ip, ok := parseAddress(args[0])
	if !ok {
		return value.Value{}
	}
	start := len(f.text)
	f.text = ip.AppendTo(f.text)
	return f.held(start)
}

// usualV6 is the network of one subscriber in IPv6.
const usualV6 = 64

func prepareCIDR(_ *exprCompiler, args []term) (apply, error) {
	v4, err := wholeLiteral(args, 1, "v4", 0, 32)
	v6 := int64(usualV6)
	if err == nil && len(args) > 2 {
		v6, err = wholeLiteral(args, 2, "v6", 0, 128)
	}
	return func(f *frame, args []*value.Value) value.Value {
		ip, ok := parseAddress(args[0])
		if !ok {
			return value.Value{}
		}
		bits := v4
		if ip.Is6() {
			bits = v6
		}
		network, _ := ip.Prefix(int(bits)) // it is within the bounds
		start := len(f.text)
		f.text = network.AppendTo(f.text)
		return f.held(start)
	}, err
}

// shared are the addresses between subscribers and the gateway of a provider (RFC 6598).
var shared = netip.MustParsePrefix("100.64.0.0/10")

func isPrivate(_ *frame, args []*value.Value) value.Value {
	ip, ok := parseAddress(args[0])
	if !ok {
		return value.Value{}
	}
	return Truth(ip.IsPrivate() || shared.Contains(ip) || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified())
}
