package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// The record of a shard is a HASH. Its positions move with the writes of batches, in apply.lua; what package progress decides is
// written by change.lua. Beside the fields of package progress it has some that belong to Redis' own protocols:
//
//	secret, hash_entities, format
//	          those of the layout when the shard began: its state cannot be read without them, and the layout may be at another
//	          server, which may lose it
//	emptying  the shard is being emptied, by this walk over the keys; see empty.lua
//	copying   the shard is being copied by the process with that token: the keys that change are noted, see package reshard
//	frozen    the shard has been copied, or is not copied yet: nothing may change it
//	shards    the number of shards that took over from this one

//go:embed server.lua
var serverLua string

//go:embed record.lua
var recordLua string

//go:embed change.lua
var changeLua string

// change is a step of the protocol in some shards.
type change struct {
	shards []int
	// decide decides about the record of a shard, which has changed meanwhile that many times before. made is called once the
	// changes of the record are written, and reports whether to go on with the shard.
	decide func(shard int, r *progress.Record, before int) (made func() (more bool), err error)
	// begins is true if the shards get positions, so that those that have not begun are emptied first.
	begins bool
	// run returns the run of the server that a shard must be in, "" for any; nil for any.
	run func(shard int) string
	// missing takes the error of a shard that cannot be reached, while others can. If it is nil, the step fails in the end.
	missing func(shard int, err error)
}

// maxAttempts is how often a record may change while a step decides about it.
const maxAttempts = 1000

// make reads the records and writes what is decided about them, each in one step; a record that has changed in between is read
// again.
func (c *change) make(ctx context.Context, s *Store) error {
	var unreachable error
	reached := false
	miss := func(shard int, err error) error {
		if !errors.Is(err, state.ErrUnavailable) {
			return err
		}
		unreachable = cmp.Or(unreachable, err)
		if c.missing != nil {
			c.missing(shard, err)
		}
		return nil
	}
	refused := map[int]int{}
	for shards := c.shards; len(shards) > 0; {
		records, errs := s.readToChange(ctx, shards, c.run)
		if c.begins {
			if err := s.beginShards(ctx, shards, records, errs, c.run); err != nil {
				return err
			}
		}
		var again []int
		var writes []write
		for i, shard := range shards {
			if errs[i] != nil {
				if err := miss(shard, errs[i]); err != nil {
					return err
				}
				continue
			}
			made, err := c.decide(shard, records[i], refused[shard])
			if err != nil {
				return err
			}
			if changed := records[i].Change(); changed != nil {
				writes = append(writes, write{shard: shard, last: records[i].LastChange(), change: changed, made: made})
				continue
			}
			reached = true
			if made() {
				again = append(again, shard)
			}
		}
		s.writeChanges(ctx, writes, c.run)
		for _, w := range writes {
			switch written, err := w.reply.Int(); {
			case err != nil:
				if err := miss(w.shard, err); err != nil {
					return err
				}
			case written == 0 && refused[w.shard] == maxAttempts:
				return changesTooOften(keyspace.ProgressKey(s.tags[w.shard]))
			case written == 0:
				refused[w.shard]++
				again = append(again, w.shard)
			default:
				reached = true
				if w.made() {
					again = append(again, w.shard)
				}
			}
		}
		shards = again
	}
	if reached && c.missing != nil {
		return nil
	}
	return unreachable
}

// write is a change of the record of a shard.
type write struct {
	shard  int
	last   string // name of the last change before
	change *progress.Change
	made   func() (more bool)
	reply  *redis.Cmd
}

// readToChange reads the records of shards, each with its own error.
func (s *Store) readToChange(ctx context.Context, shards []int, run func(shard int) string) ([]*progress.Record, []error) {
	replies, commands := make([]*redis.Cmd, len(shards)), make([]redis.Cmder, len(shards))
	for i, shard := range shards {
		replies[i] = evalAbout(ctx, recordLua, keyspace.ProgressKey(s.tags[shard]), runOf(run, shard))
		commands[i] = replies[i]
	}
	s.sendRecords(ctx, commands, shards)
	records, errs := make([]*progress.Record, len(shards)), make([]error, len(shards))
	for i, reply := range replies {
		records[i], errs[i] = recordOf(reply)
		if _, about := errors.AsType[*progress.FieldError](errs[i]); about {
			errs[i] = fmt.Errorf("%s: %w", keyspace.ProgressKey(s.tags[shards[i]]), errs[i])
		}
	}
	return records, errs
}

// recordOf returns the record in a reply of record.lua.
func recordOf(reply *redis.Cmd) (*progress.Record, error) {
	fields, clock, err := fieldsOf(reply)
	if err != nil {
		return nil, err
	}
	return progress.Of(fields, clock)
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

// changeRegister has a function decide how to change a register of the namespace, given its fields and the time of Redis in ms, and
// makes the change. If the register has changed meanwhile, it is called again. A nil change leaves the register as it is.
func (s *Store) changeRegister(ctx context.Context, key string, decide func(fields map[string]string, clock int64) (*progress.Change, error)) error {
	for range maxAttempts {
		read := evalAbout(ctx, recordLua, key, "")
		if err := s.sendAbout(ctx, key, read); err != nil {
			return err
		}
		fields, clock, err := fieldsOf(read)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		c, err := decide(fields, clock)
		if c == nil || err != nil {
			return err
		}
		if made, err := s.writeRegister(ctx, key, fields[progress.ChangeField], c); made || err != nil {
			return err
		}
	}
	return changesTooOften(key)
}

// writeRegister makes a change of a register, and reports whether it was made: not if another one was made since the last one that
// was read.
func (s *Store) writeRegister(ctx context.Context, key, last string, c *progress.Change) (bool, error) {
	write := evalAbout(ctx, changeLua, key, changeArgs("", last, c)...)
	if err := s.sendAbout(ctx, key, write); err != nil {
		return false, err
	}
	made, err := write.Int()
	return made == 1, err
}

func changesTooOften(key string) error {
	return fmt.Errorf("%s changed %d times while it was changed", key, maxAttempts)
}

func runOf(run func(shard int) string, shard int) string {
	if run == nil {
		return ""
	}
	return run(shard)
}

// evalAbout makes a call of a script about the key of a record or a register.
func evalAbout(ctx context.Context, lua, key string, args ...any) *redis.Cmd {
	command := redis.NewCmd(ctx, append([]any{"eval", serverLua + lua, 1, key}, args...)...)
	command.SetFirstKeyPos(3)
	return command
}

// changeArgs returns the arguments of change.lua.
func changeArgs(run, last string, c *progress.Change) []any {
	args := []any{run, last, rand.Text(), len(c.Seen)}
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

// writeChanges sends changes, which then have their replies.
func (s *Store) writeChanges(ctx context.Context, writes []write, run func(shard int) string) {
	commands, shards := make([]redis.Cmder, len(writes)), make([]int, len(writes))
	for i := range writes {
		w := &writes[i]
		w.reply = evalAbout(ctx, changeLua, keyspace.ProgressKey(s.tags[w.shard]), changeArgs(runOf(run, w.shard), w.last, w.change)...)
		commands[i], shards[i] = w.reply, w.shard
	}
	s.sendRecords(ctx, commands, shards)
}

// sendRecords sends commands about the records of shards, each of which then has its own error.
func (s *Store) sendRecords(ctx context.Context, commands []redis.Cmder, shards []int) {
	s.send(ctx, s.masters.write, commands, func(i int) int { return shards[i] })
	for _, command := range commands {
		if err := command.Err(); err != nil && strings.HasPrefix(err.Error(), "OTHERRUN ") {
			command.SetErr(errOtherRun)
		}
	}
}

// errOtherRun is the error of a claim in a shard of a server that the claimant has not seen. It is a state.ErrUnavailable, until
// the definitions are bound again.
var errOtherRun = fmt.Errorf("its server has been restarted or replaced since the definitions were bound to its state: %w", state.ErrUnavailable)

// beginShards empties the shards that have not begun, and reads their records again.
func (s *Store) beginShards(ctx context.Context, shards []int, records []*progress.Record, errs []error, run func(shard int) string) error {
	var of, begin []int
	for i, r := range records {
		if errs[i] == nil && !r.Begun() {
			of, begin = append(of, i), append(begin, shards[i])
		}
	}
	if len(begin) == 0 {
		return nil
	}
	if err := s.empty(ctx, begin); err != nil {
		return err
	}
	read, readErrs := s.readToChange(ctx, begin, run)
	for n, i := range of {
		records[i], errs[i] = read[n], readErrs[n]
	}
	return nil
}

// readRecords reads the records of shards, frozen ones, too, each with its own error.
func (s *Store) readRecords(ctx context.Context, within time.Duration, shards []int) ([]*progress.Record, []error) {
	replies, commands := make([]*redis.MapStringStringCmd, len(shards)), make([]redis.Cmder, len(shards))
	for i, shard := range shards {
		replies[i] = redis.NewMapStringStringCmd(ctx, "hgetall", keyspace.ProgressKey(s.tags[shard]))
		commands[i] = replies[i]
	}
	s.send(ctx, within, commands, func(i int) int { return shards[i] })
	records, errs := make([]*progress.Record, len(shards)), make([]error, len(shards))
	for i, reply := range replies {
		if errs[i] = reply.Err(); errs[i] != nil {
			continue
		}
		var err error
		if records[i], err = progress.Of(reply.Val(), 0); err != nil {
			errs[i] = fmt.Errorf("%s: %w", keyspace.ProgressKey(s.tags[shards[i]]), err)
		}
	}
	return records, errs
}
