package embedded

import (
	"bufio"
	"bytes"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// unitedKey holds the union while it is counted; other clients never see it.
const unitedKey = "\x00embedded:pfcount"

// pfcountScript runs under the server's lock, or within the client's MULTI.
const pfcountScript = `
local merged = redis.pcall('PFMERGE', '` + unitedKey + `', unpack(KEYS))
if merged.err then return merged end
local count = redis.call('PFCOUNT', '` + unitedKey + `')
redis.call('DEL', '` + unitedKey + `')
return count`

// unitingPFCount mends miniredis's PFCOUNT over several keys, which adds
// their counts up where Redis counts the union: a value seen on seven days
// would count seven times.
func unitingPFCount(s *server.Server) server.Hook {
	return func(c *server.Peer, cmd string, args ...string) bool {
		if cmd != "PFCOUNT" || len(args) < 2 {
			return false
		}
		reply := dispatch(s, c, append([]string{"EVAL", pfcountScript, strconv.Itoa(len(args))}, args...)...)
		if strings.Contains(reply, "not allowed from script") {
			// We are in a script, which cannot call another but has the
			// server to itself.
			reply = dispatch(s, c, append([]string{"PFMERGE", unitedKey}, args...)...)
			if !strings.HasPrefix(reply, "-") {
				reply = dispatch(s, c, "PFCOUNT", unitedKey)
				dispatch(s, c, "DEL", unitedKey)
			}
		}
		c.WriteRaw(reply)
		return true
	}
}

// dispatch runs a command in the session of c and returns the raw reply.
func dispatch(s *server.Server, c *server.Peer, args ...string) string {
	var reply bytes.Buffer
	w := bufio.NewWriter(&reply)
	session := server.NewPeer(w)
	session.Ctx, session.Resp3 = c.Ctx, c.Resp3
	s.Dispatch(session, args)
	session.Flush()
	c.Ctx = session.Ctx
	return reply.String()
}
