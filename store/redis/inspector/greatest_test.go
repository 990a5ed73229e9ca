package inspector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// walked is a namespace with keys of group "g" in its shards.
type walked struct {
	*testing.T
	client    redis.UniversalClient
	namespace string
}

const walkedShards = 8

func (w *walked) tags(shards int) (tags []string) {
	for shard := range shards {
		tags = append(tags, keyspace.ShardTag(w.namespace, shard, shards))
	}
	return tags
}

func (w *walked) inspector(hashing *keyspace.Hashing) *Inspector {
	return New(w.client, w.namespace, w.tags(walkedShards), hashing, 0)
}

// write writes the key of an entity as that long, idle for an hour.
func (w *walked) write(shards, shard int, entity string, bytes int) (key string) {
	w.Helper()
	key = string(keyspace.AppendKey(nil, w.tags(shards)[shard], "g", []byte(entity)))
	if err := w.client.Set(w.Context(), key, strings.Repeat("x", bytes), 0).Err(); err != nil {
		w.Fatal(err)
	}
	restore := redis.NewStatusCmd(w.Context(), "restore", key, 0, w.client.Dump(w.Context(), key).Val(), "replace", "idletime", 3600)
	if err := w.client.Process(w.Context(), restore); err != nil {
		w.Fatal(err)
	}
	return key
}

// The longest keys are those of all shards and masters, by their lengths. Other keys are not looked at.
func TestGreatest(t *testing.T) {
	cluster := redistest.SharedCluster(t)
	for name, client := range map[string]redis.UniversalClient{"redis": redistest.Shared(t).Client(t), "cluster": cluster.Client(t)} {
		t.Run(name, func(t *testing.T) {
			w := &walked{t, client, testkit.Namespace(t)}
			var want []state.LongKey
			for shard := range walkedShards {
				entity := fmt.Sprintf("e:%d", shard)
				bytes := 1000 + 300*shard
				key := w.write(walkedShards, shard, entity, bytes)
				want = append([]state.LongKey{{Key: key, Group: "g", Entity: entity, Bytes: int64(bytes), Shard: shard}}, want...)
			}
			for i := range 200 {
				w.write(walkedShards, i%walkedShards, fmt.Sprint("short", i), 10)
			}
			// Memory for twice the length is reserved here.
			reserved := w.write(walkedShards, 0, "reserved", 900)
			w.client.Append(t.Context(), reserved, strings.Repeat("x", 50))
			want = append(want, state.LongKey{Key: reserved, Group: "g", Entity: "reserved", Bytes: 950})
			w.write(2*walkedShards, 1, "of another number of shards", 5000)
			w.client.HSet(t.Context(), keyspace.ProgressKey(w.tags(1)[0]), "x", strings.Repeat("x", 5000))
			foreign := string(keyspace.AppendKey(nil, w.tags(walkedShards)[3], "g", []byte("foreign")))
			w.client.SAdd(t.Context(), foreign, strings.Repeat("x", 5000))

			found, err := w.inspector(nil).Greatest(t.Context(), len(want), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			servers := map[string]bool{}
			for _, k := range found.Keys {
				servers[k.Server] = true
			}
			if name == "cluster" && len(servers) < 2 || name == "redis" && !servers[""] {
				t.Errorf("unexpected servers %v", servers)
			}
			if diff := cmp.Diff(state.LongKeys{Keys: want, Looked: 210, All: true}, found, cmpopts.IgnoreFields(state.LongKey{}, "Server")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if few, err := w.inspector(keyspace.NewHashing([]byte("secret"))).Greatest(t.Context(), 2, time.Minute); err != nil || len(few.Keys) != 2 || few.Keys[1].Bytes != 2800 || !few.Hashed {
				t.Errorf("the two longest keys: got %+v, error %v", few, err)
			}
			// A walk does not end the idle time of what is not among the greatest.
			short := string(keyspace.AppendKey(nil, w.tags(walkedShards)[3], "g", []byte("short99")))
			idle := redis.NewIntCmd(t.Context(), "object", "idletime", short)
			idle.SetFirstKeyPos(2)
			if err := w.client.Process(t.Context(), idle); err != nil || idle.Val() < 3600 {
				t.Errorf("%s was idle for %d s, want at least an hour; error %v", short, idle.Val(), err)
			}
		})
	}
}

// Without one of the masters the list has the keys of the others, and the error names it.
func TestGreatestWithoutAMaster(t *testing.T) {
	cluster := redistest.NewCluster(t)
	w := &walked{t, cluster.Client(t), testkit.Namespace(t)}
	for shard := range walkedShards {
		w.write(walkedShards, shard, fmt.Sprint(shard), 100)
	}
	whole, err := w.inspector(nil).Greatest(t.Context(), 10, time.Minute)
	if err != nil || len(whole.Keys) != walkedShards {
		t.Fatal(whole, err)
	}
	away := cluster.Nodes[1]
	away.Kill()
	found, err := w.inspector(nil).Greatest(t.Context(), 10, time.Minute)
	if want := away.Addr() + ": nothing listens at " + away.Addr() + ": check the address, and that the server runs"; fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
	var want []state.LongKey
	for _, k := range whole.Keys {
		if k.Server != away.Addr() {
			want = append(want, k)
		}
	}
	if diff := cmp.Diff(state.LongKeys{Keys: want, Looked: len(want)}, found); diff != "" || len(want) == walkedShards {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// endless is a server with keys without end, which takes a millisecond for each step of a walk.
type endless struct {
	step int
	err  error // of the lengths
}

func (e *endless) DialHook(next redis.DialHook) redis.DialHook { return next }

func (e *endless) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		time.Sleep(time.Millisecond / 2)
		e.step++
		var keys []string
		for i := range 10 {
			keys = append(keys, fmt.Sprintf("{ns:0}g:%d-%d", e.step, i))
		}
		cmd.(*redis.ScanCmd).SetVal(append(keys, "{ns:0}g:again"), uint64(e.step))
		return nil
	}
}

func (e *endless) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, commands []redis.Cmder) error {
		if commands[0].Name() == "memory" {
			time.Sleep(time.Millisecond / 2)
		}
		for _, cmd := range commands {
			cmd.(*redis.IntCmd).SetVal(100)
			if cmd.Name() == "strlen" {
				cmd.SetErr(e.err)
			}
		}
		return nil
	}
}

// A walk takes half of a server's time, ends with its patience, and meets a key more than once.
func TestGreatestIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &endless{}
		client := redis.NewClient(&redis.Options{MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}})
		defer client.Close()
		client.AddHook(server)
		s := New(client, "ns", []string{"{ns:0}"}, nil, 0)
		began := time.Now()
		found, err := s.Greatest(t.Context(), 3, time.Second)
		if err != nil || found.All || found.Looked != 11*500 || server.step != 500 || time.Since(began) != time.Second {
			t.Errorf("after %v, with %d keys a step: got %+v, error %v; want a second and 11 steps of 500", time.Since(began), server.step, found, err)
		}
		var names []string
		for _, k := range found.Keys {
			names = append(names, k.Entity)
		}
		if want := []string{"1-0", "1-1", "1-2"}; !cmp.Equal(names, want) {
			t.Errorf("found %q, want %q", names, want)
		}
		// Whoever asked may have gone.
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began = time.Now()
		if _, err := s.Greatest(ctx, 3, time.Second); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 110*time.Millisecond {
			t.Errorf("after %v: got error %v, want that of the deadline", time.Since(began), err)
		}
		server.err = errors.New("NOPERM no permissions to run the 'strlen' command")
		if found, err := s.Greatest(t.Context(), 3, time.Millisecond); fmt.Sprint(err) != "Redis: look at the lengths of keys: "+server.err.Error() || len(found.Keys) > 0 {
			t.Errorf("a server that refuses: got %+v, error %v", found, err)
		}
	})
}

// scanned calls a function after a master has listed some keys.
type scanned struct{ then func() }

func (scanned) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s scanned) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if keys, is := cmd.(*redis.ScanCmd); is && err == nil {
			if names, _ := keys.Val(); len(names) > 0 {
				s.then()
			}
		}
		return err
	}
}

func (scanned) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A slot that moves to another master after its keys were listed does not end the walk.
func TestGreatestWhileASlotMoves(t *testing.T) {
	cluster := redistest.NewCluster(t)
	client := cluster.Client(t)
	w := &walked{t, client, "moving"}
	w.write(walkedShards, 0, "a", 1000)
	tag := w.tags(walkedShards)[0]
	from := redistest.SlotOwner(t.Context(), tag, cluster.Nodes...)
	to := cluster.Nodes[0]
	if to == from {
		to = cluster.Nodes[1]
	}
	var once sync.Once
	err := client.ForEachMaster(t.Context(), func(ctx context.Context, master *redis.Client) error {
		master.AddHook(scanned{func() {
			once.Do(func() {
				if err := redistest.MoveSlot(ctx, keyspace.SlotOf(tag[1:len(tag)-1]), from, to, cluster.Nodes...); err != nil {
					t.Error(err)
				}
			})
		}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	found, err := w.inspector(nil).Greatest(t.Context(), 3, time.Minute)
	if err != nil || len(found.Keys) != 1 || found.Keys[0].Bytes != 1000 {
		t.Errorf("got %+v, error %v; want the key of 1000 bytes", found, err)
	}
}
