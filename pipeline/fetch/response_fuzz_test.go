package fetch

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// answering is a connection to a broker that sends some bytes.
type answering struct{ bytes.Reader }

func (*answering) Write(p []byte) (int, error) { return len(p), nil }

// FuzzResponses reads any bytes as the response to each request that is sent: they are a response or an error, and
// what they claim to be allocates nothing.
func FuzzResponses(f *testing.F) {
	keys := []kmsg.Key{kmsg.Fetch, kmsg.ListOffsets, kmsg.Metadata, kmsg.OffsetForLeaderEpoch, kmsg.FindCoordinator,
		kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat, kmsg.LeaveGroup, kmsg.OffsetCommit}
	for i, key := range keys {
		response := kmsg.RequestForKey(int16(key)).ResponseKind()
		response.SetVersion(versions[key].max)
		f.Add(uint8(i), uint8(versions[key].max), int32(100), append([]byte{0}, response.AppendTo(nil)...))
	}
	f.Fuzz(func(t *testing.T, which, version uint8, claims int32, content []byte) {
		if claimsManyTags(content) {
			t.Skip()
		}
		key := keys[int(which)%len(keys)]
		known := versions[key]
		request := kmsg.RequestForKey(int16(key))
		request.SetVersion(known.min + int16(version)%(known.max-known.min+1))
		for _, size := range []int32{claims, int32(len(content)) + 4} {
			sent := binary.BigEndian.AppendUint32(nil, uint32(size))
			sent = append(binary.BigEndian.AppendUint32(sent, 1), content...)
			connection := &answering{}
			connection.Reset(sent)
			body, err := roundTrip(connection, "weir", request, nil)
			if cap(body) > 2*len(content)+2<<20 {
				t.Fatalf("%d bytes for %d that came", cap(body), len(content))
			}
			if err != nil {
				continue
			}
			if request.IsFlexible() {
				if body, err = skipTags(body); err != nil {
					continue
				}
			}
			response := request.ResponseKind()
			response.SetVersion(request.GetVersion())
			_ = response.ReadFrom(body) // an error, or not
		}
	})
}

// claimsManyTags reports whether bytes may be read as the number of 2^24 tags or more. The library counts up to the number
// that is claimed, also if there are none: that takes up to 8 s, on a busy machine more than the 10 after which the fuzzer
// says that it hung.
func claimsManyTags(content []byte) bool {
	for i := range content {
		if n, length := binary.Uvarint(content[i:]); length > 0 && 1<<24 <= n && n < 1<<32 {
			return true
		}
	}
	return false
}
