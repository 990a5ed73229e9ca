package redisstore

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// replying answers commands with what some bytes say, in the types in which a server answers them.
type replying struct {
	mu   sync.Mutex // masters that do not answer are asked meanwhile
	rest []byte
}

func (r *replying) byte() (b byte) {
	if len(r.rest) > 0 {
		b, r.rest = r.rest[0], r.rest[1:]
	}
	return b
}

// text is what follows a byte with its length, or the next line.
func (r *replying) text() string {
	n := int(r.byte())
	if n == '\n' {
		line, rest, _ := strings.Cut(string(r.rest), "\n")
		r.rest = []byte(rest)
		return line
	}
	n = min(n, len(r.rest))
	text := string(r.rest[:n])
	r.rest = r.rest[n:]
	return text
}

// value is an element of a list.
func (r *replying) value(depth int) any {
	switch b := r.byte(); {
	case b < 32 && depth < 3:
		return r.list(int(b), depth+1)
	case b < 64:
		return nil
	case b < 96:
		return int64(r.byte()) << r.byte()
	default:
		return r.text()
	}
}

func (r *replying) list(n, depth int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = r.value(depth)
	}
	return list
}

// answered is an error of a server.
type answered string

func (e answered) Error() string { return string(e) }
func (answered) RedisError()     {}

func (r *replying) reply(command redis.Cmder) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.byte() {
	case 0:
		return redis.Nil
	case 1:
		return answered(r.text())
	}
	switch c := command.(type) {
	case *redis.StringCmd:
		c.SetVal(r.text())
	case *redis.StatusCmd:
		c.SetVal(r.text())
	case *redis.IntCmd:
		c.SetVal(int64(r.byte()))
	case *redis.BoolCmd:
		c.SetVal(r.byte() > 0)
	case *redis.MapStringStringCmd:
		fields := map[string]string{}
		for range r.byte() % 8 {
			fields[r.text()] = r.text()
		}
		c.SetVal(fields)
	case *redis.StringSliceCmd:
		var texts []string
		for range r.byte() % 8 {
			texts = append(texts, r.text())
		}
		c.SetVal(texts)
	case *redis.SliceCmd: // as many as were asked for
		keys := len(c.Args()) - 1
		if c.Name() == "hmget" {
			keys--
		}
		list := make([]any, keys)
		for i := range list {
			if r.byte() > 32 {
				list[i] = r.text()
			}
		}
		c.SetVal(list)
	case *redis.Cmd:
		c.SetVal(r.value(0))
	}
	return nil
}

func (*replying) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *replying) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, command redis.Cmder) error {
		err := r.reply(command)
		command.SetErr(err)
		return err
	}
}

func (r *replying) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, commands []redis.Cmder) error {
		for _, c := range commands {
			c.SetErr(r.reply(c))
		}
		return nil
	}
}

// FuzzReplies gives arbitrary replies to everything that reads: whoever may write Weir's keys can make the answers wrong,
// but no process end.
func FuzzReplies(f *testing.F) {
	f.Add([]byte("\x02\x80\x0712:3:ab\x02\x80\x0512::x\x02\x80\n99;1-5,7-@4\n"))
	f.Add([]byte("\x02\x01\n{\"version\":\"1\"}\n\x02\n{\"plans\":{}}\n"))
	f.Add([]byte("\x02\x03\x80\n1:2:a\n\x80\n17\n\x20\x80\n5:6\n\x01\nMOVED 1 127.0.0.1:1\n"))
	f.Fuzz(func(t *testing.T, replies []byte) {
		client := redis.NewClient(&redis.Options{MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}})
		defer client.Close()
		server := &replying{}
		client.AddHook(server)
		s := New(client, "ns", 2)
		ctx, partitions := t.Context(), []state.Partition{{Topic: "t"}, {Topic: "t", ID: 1, Plan: "1"}}
		reads := []state.Read{{Series: amount, Entity: "d", First: 0, Last: 1 << 40}, {Series: events, Entity: "e", First: 0, Last: 1 << 40}}
		pending := &state.Batch{Ranges: []state.PartitionRange{{Partition: transactions}}}
		fill(pending, 0, event{device: "d", user: "u", time: 100 * day, cents: 5})
		for _, read := range []func() error{
			func() error { _, err := s.Progress(ctx, partitions); return err },
			func() error { _, err := s.Claim(ctx, partitions, state.Claimant{Version: "2"}); return err },
			func() error { _, err := s.History(ctx); return err },
			func() error { _, err := s.Log(ctx, "ab"); return err },
			func() error { _, err := s.Clock(ctx); return err },
			func() error { _, err := s.Busiest(ctx); return err },
			func() error { _, err := s.Applied(ctx, partitions[0], 5, reads); return err },
			func() error { _, err := s.Read(ctx, reads); return err },
			func() error { _, err := s.ReadOverlay(ctx, reads, pending); return err },
			func() error { return s.CheckLayout(ctx) },
			func() error { _, err := s.Secret(ctx); return err },
			func() error { slotLeaves(string(replies)); infoFields(string(replies)); return nil },
			func() error {
				asked := inquiry{info: redis.NewStringResult(string(replies), nil), clock: redis.NewTimeCmdResult(time.Time{}, nil)}
				_, err := asked.standing()
				return err
			},
			func() error { _, _, _, _ = keyspace.SplitKey(string(replies)); return nil },
		} {
			server.mu.Lock()
			server.rest = replies
			server.mu.Unlock()
			_ = read() // an error, or not: the bytes may be what Weir writes
		}
	})
}
