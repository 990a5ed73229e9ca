package redisstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/protocol"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// The record of a shard is a HASH, see package progress. Its positions move with the writes of batches, in apply.lua; what package
// protocol decides is written by change.lua. It also has fields of Redis' own protocols:
//
//	secret, hash_entities, format, shards
//	          those of the layout when the shard began: its state cannot be found and read without them, and the layout may be at
//	          another server, which may lose it. If other shards took over from this one, shards is their number
//	emptying  the shard is being emptied, by this walk over the keys; see empty.lua
//	copying   the shard is being copied by the process with that token: the keys that change are noted, see package reshard
//	frozen    the shard has been copied, or is not copied yet: nothing may change it

//go:embed server.lua
var serverLua string

//go:embed record.lua
var recordLua string

//go:embed change.lua
var changeLua string

// plansKey and usedKey hold the registers of a namespace, see package protocol: all plans that ever wrote to it, and those in use.
func plansKey(namespace string) string { return namespace + ":plans" }
func usedKey(namespace string) string  { return namespace + ":used" }

// busiestKey holds what processors publish about their busiest entities.
func busiestKey(namespace string) string { return namespace + ":busiest" }

// records are the records of a store.
type records struct{ s *Store }

var _ protocol.Engine = records{}

func (r records) Shards() int { return len(r.s.tags) }

func (r records) Name(record int) string {
	switch record {
	case protocol.Plans:
		return plansKey(r.s.namespace)
	case protocol.Used:
		return usedKey(r.s.namespace)
	case protocol.Busiest:
		return busiestKey(r.s.namespace)
	default:
		return keyspace.ProgressKey(r.s.tags[record])
	}
}

func (r records) Down(ctx context.Context) error { return r.s.down(ctx) }

func (r records) Begin(ctx context.Context, shards []int) error { return r.s.empty(ctx, shards) }

func (r records) Servers(ctx context.Context) []*protocol.Server {
	servers := make([]*protocol.Server, len(r.s.tags))
	for shard, v := range r.s.askServers(ctx, r.s.masters.question) {
		if v != nil {
			servers[shard] = &v.Server
		}
	}
	return servers
}

func (r records) Names(ctx context.Context, register int) ([]string, error) {
	names := redis.NewStringSliceCmd(ctx, "hkeys", r.Name(register))
	err := r.s.sendAbout(ctx, r.Name(register), names)
	return names.Val(), err
}

// Read reads records with a script if it is to change them, else with one command each.
func (r records) Read(ctx context.Context, q protocol.Query) []protocol.Found {
	commands := make([]redis.Cmder, len(q.Records))
	for i, record := range q.Records {
		switch key := r.Name(record); {
		case q.For == protocol.ToChange:
			commands[i] = evalAbout(ctx, recordLua, key, q.Run(record))
		case q.Names == nil:
			commands[i] = redis.NewMapStringStringCmd(ctx, "hgetall", key)
		default:
			args := []any{"hmget", key}
			for _, name := range q.Names {
				args = append(args, name)
			}
			commands[i] = redis.NewSliceCmd(ctx, args...)
		}
	}
	within := r.s.masters.write
	if q.For == protocol.ToAnswer {
		within = r.s.masters.question
	}
	r.send(ctx, within, commands, q.Records)
	found := make([]protocol.Found, len(commands))
	for i, command := range commands {
		found[i] = foundIn(command, q.Names)
	}
	if q.For == protocol.ToAnswer && q.Names == nil {
		r.s.refuseHalted(found)
		r.s.refuseOtherSecret(found)
	}
	return found
}

// foundIn returns the record in a reply.
func foundIn(command redis.Cmder, names []string) (f protocol.Found) {
	if f.Err = command.Err(); f.Err != nil {
		return f
	}
	switch reply := command.(type) {
	case *redis.MapStringStringCmd:
		f.Fields = reply.Val()
	case *redis.SliceCmd:
		f.Fields = make(map[string]string, len(names))
		for i, value := range reply.Val() {
			if text, has := value.(string); has {
				f.Fields[names[i]] = text
			}
		}
	case *redis.Cmd:
		f.Fields, f.Clock, f.Err = fieldsOf(reply)
	}
	return f
}

// fieldsOf returns the fields in a reply of record.lua, and the time of Redis in ms.
func fieldsOf(reply *redis.Cmd) (fields map[string]string, clock int64, err error) {
	texts, err := reply.StringSlice()
	if err != nil {
		return nil, 0, err
	}
	if len(texts)%2 == 0 {
		return nil, 0, errReply
	}
	if clock, err = strconv.ParseInt(texts[0], 10, 64); err != nil {
		return nil, 0, errReply
	}
	fields = make(map[string]string, len(texts)/2)
	for i := 1; i < len(texts); i += 2 {
		fields[texts[i]] = texts[i+1]
	}
	return fields, clock, nil
}

// Change makes changes with change.lua.
func (r records) Change(ctx context.Context, changes []protocol.Change) {
	commands, of := make([]redis.Cmder, len(changes)), make([]int, len(changes))
	for i := range changes {
		c := &changes[i]
		commands[i], of[i] = evalAbout(ctx, changeLua, r.Name(c.Record), changeArgs(c)...), c.Record
	}
	r.send(ctx, r.s.masters.write, commands, of)
	for i, command := range commands {
		made, err := command.(*redis.Cmd).Int()
		changes[i].Made, changes[i].Err = made == 1, err
	}
}

// evalAbout makes a call of a script about the key of a record.
func evalAbout(ctx context.Context, lua, key string, args ...any) *redis.Cmd {
	command := redis.NewCmd(ctx, append([]any{"eval", serverLua + lua, 1, key}, args...)...)
	command.SetFirstKeyPos(3)
	return command
}

// changeArgs returns the arguments of change.lua.
func changeArgs(c *protocol.Change) []any {
	args := []any{c.Run, c.Last, rand.Text(), len(c.Seen)}
	for field, value := range c.Seen {
		args = append(args, field, value)
	}
	args = append(args, len(c.Deleted))
	for _, field := range c.Deleted {
		args = append(args, field)
	}
	args = append(args, len(c.Stamped))
	for _, field := range c.Stamped {
		args = append(args, field)
	}
	for field, value := range c.Set {
		args = append(args, field, value)
	}
	return args
}

// send sends commands, each about a record, which then have their own errors.
func (r records) send(ctx context.Context, within time.Duration, commands []redis.Cmder, of []int) {
	if len(of) == 1 && of[0] < 0 {
		_ = r.s.sendAbout(ctx, r.Name(of[0]), commands[0]) // the command has the error
	} else {
		r.s.send(ctx, within, commands, func(i int) int { return of[i] })
	}
	for _, command := range commands {
		if err := command.Err(); err != nil && strings.HasPrefix(err.Error(), "OTHERRUN ") {
			command.SetErr(errOtherRun)
		}
	}
}

// errOtherRun is the error of a claim in a shard of a server that the claimant has not seen. It is a state.ErrUnavailable, until
// the definitions are bound again.
var errOtherRun = fmt.Errorf("its server has been restarted or replaced since the definitions were bound to its state: %w", state.ErrUnavailable)

// askShards sends a command about the record of each shard to its master. It returns the commands with their replies,
// by shard.
func askShards[C redis.Cmder](ctx context.Context, s *Store, within time.Duration, about func(key string) C) []C {
	asked, commands := make([]C, len(s.tags)), make([]redis.Cmder, len(s.tags))
	for shard, tag := range s.tags {
		asked[shard] = about(keyspace.ProgressKey(tag))
		commands[shard] = asked[shard]
	}
	s.send(ctx, within, commands, func(shard int) int { return shard })
	return asked
}
