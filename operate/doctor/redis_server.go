package doctor

import (
	"fmt"
	"strconv"
	"time"
)

// server holds what a Redis server reports about itself.
type server struct {
	subject string
	info    map[string]string
	// config is the reply to CONFIG GET; empty if it is refused, as by many hosting providers.
	config map[string]string
	// By the settings: it is a member of a cluster, and may evict keys.
	cluster, eviction bool
	// skew is how far its clock is ahead of this machine's.
	skew time.Duration
}

const (
	warnSkew = time.Second
	failSkew = time.Minute
	// fullShare is the used share of maxmemory, in percent, above which it is reported.
	fullShare = 85
)

// judge checks one server.
func (s *server) judge() (f Findings) {
	s.version(&f)
	s.role(&f)
	s.persistence(&f)
	s.memory(&f)
	s.replicas(&f)
	s.clock(&f)
	return f
}

func (s *server) version(f *Findings) {
	name, version := "Redis", s.info["redis_version"]
	if valkey := s.info["valkey_version"]; valkey != "" {
		name = "Valkey"
		f.ok(s.subject, "%s %s", name, valkey)
		return
	}
	if err := Supported(version); err != nil {
		f.add(Fail, s.subject, err.Error(), "install Redis 6.2 or later, or Valkey")
		return
	}
	f.ok(s.subject, "%s %s", name, version)
}

func (s *server) role(f *Findings) {
	switch {
	case s.info["role"] == "slave":
		f.add(Fail, s.subject, "is a replica, which accepts no writes", "set redis.addresses to the master, or use redis.mode sentinel or cluster")
	case s.info["cluster_enabled"] == "1" && !s.cluster:
		f.add(Fail, s.subject, "is a member of a cluster, and redis.mode is not cluster", "set redis.mode: cluster")
	}
}

func (s *server) persistence(f *Findings) {
	const again = "after a crash events since then are read again"
	save, known := s.config["save"]
	truncated, says := s.config["aof-load-truncated"]
	found := "aof-load-truncated is " + truncated
	if !says {
		found = "it does not report aof-load-truncated"
	}
	switch {
	case s.info["aof_enabled"] == "" && !known:
		f.add(Warn, s.subject, "does not report what it keeps on disk: after a crash all events may be read again",
			"see to it that whoever runs it keeps an append-only file")
	case s.info["aof_enabled"] == "1" && s.info["aof_last_write_status"] == "err":
		f.add(Fail, s.subject, "the last write to the append-only file failed", "check its log and its disk")
	case s.info["rdb_last_bgsave_status"] == "err" && known && save != "" && s.config["stop-writes-on-bgsave-error"] == "yes":
		f.add(Fail, s.subject, "the last snapshot failed: until one succeeds, it refuses writes, and events wait",
			"check its log, its disk and vm.overcommit_memory; with appendonly yes it needs no snapshots (save \"\")")
	case s.info["aof_enabled"] == "1" && s.unmended():
		f.add(Warn, s.subject, found+", and the append-only file was not rewritten since the start: "+
			"if a crash had torn it, Redis (7.0.15 does; others were not tried) applies what was torn twice after another one",
			"run BGREWRITEAOF if it is allowed, and let the user of redis.username run it, as processors do when they find a server started")
	case s.info["aof_enabled"] == "1" && s.config["rdbcompression"] == "yes" && s.config["auto-aof-rewrite-percentage"] == "100":
		f.add(OK, s.subject, "keeps an append-only file, which it rewrites whenever it has doubled",
			"rdbcompression no, or auto-aof-rewrite-percentage 400, each save a seventh of what an event costs it, for a longer file; see docs/sizing.md")
	case s.info["aof_enabled"] == "1":
		f.ok(s.subject, "keeps an append-only file")
	case s.info["rdb_last_bgsave_status"] == "err":
		f.add(Fail, s.subject, "appendonly is off, and the last snapshot failed", "check its log and its disk; set appendonly yes")
	case !known:
		f.add(Warn, s.subject, "appendonly is off, and it does not report whether it makes snapshots: "+again, "set appendonly yes, or have its provider do so")
	case save != "":
		f.add(Warn, s.subject, "appendonly is off, only snapshots are made (save "+save+"): "+again, "set appendonly yes")
	default:
		f.add(Fail, s.subject, "keeps nothing on disk: after a restart all state is read again from the start of the topics, as far as they go back",
			"set appendonly yes")
	}
}

// unmended reports whether the append-only file may still be the one that the server read at its start, which may be
// torn, and is longer than a new file.
func (s *server) unmended() bool {
	const newFile = 4096 // bytes
	return s.info["aof_last_rewrite_time_sec"] == "-1" && s.info["aof_rewrite_in_progress"] == "0" &&
		number(s.info["aof_base_size"]) > newFile && s.config["aof-load-truncated"] != "no"
}

func (s *server) memory(f *Findings) {
	policy, most := s.info["maxmemory_policy"], number(s.info["maxmemory"])
	switch {
	case policy == "noeviction":
		f.ok(s.subject, "maxmemory-policy is noeviction")
	case policy == "":
		f.add(Warn, s.subject, "does not report its maxmemory-policy", "make sure that it is noeviction: keys that are evicted are not noticed then")
	case most == 0:
		f.add(Warn, s.subject, "maxmemory-policy is "+policy+", which does nothing as long as maxmemory is 0", "set maxmemory-policy noeviction")
	case s.eviction:
		f.add(Warn, s.subject, "maxmemory-policy is "+policy+", which redis.allow_eviction allows: answers are INCOMPLETE from the first eviction on",
			"set maxmemory-policy noeviction")
	default:
		f.add(Fail, s.subject, "maxmemory-policy is "+policy+": no process starts, and answers are INCOMPLETE from the first eviction on",
			"set maxmemory-policy noeviction")
	}
	if n := s.info["evicted_keys"]; number(n) > 0 {
		f.add(Warn, s.subject, "it has evicted "+n+" keys since it was started: answers that reach back to before the last one are INCOMPLETE",
			"raise maxmemory; to have all events again see Keys that disappear in docs/guarantees.md")
	}
	used := number(s.info["used_memory"])
	switch counted := used - number(s.info["mem_not_counted_for_evict"]); {
	case most > 0 && counted >= most && policy == "noeviction":
		f.add(Fail, s.subject, "maxmemory is used up: it refuses writes, and events wait", "raise maxmemory, or add masters to the cluster")
	case most > 0 && used*100 >= most*fullShare:
		f.add(Warn, s.subject, strconv.FormatInt(used*100/most, 10)+"% of maxmemory are in use: once it is full, events wait",
			"raise maxmemory, or add masters to the cluster")
	}
}

func (s *server) replicas(f *Findings) {
	n := s.info["connected_slaves"]
	if s.info["role"] != "master" || n == "" {
		return
	}
	least, known := s.config["min-replicas-to-write"]
	if good, limited := s.info["min_slaves_good_slaves"]; limited && number(good) < number(least) {
		f.add(Fail, s.subject, fmt.Sprintf("replicas: %s, of which %s keep up; min-replicas-to-write is %s: it refuses writes, and events wait", n, good, least),
			"add replicas or repair them, or set a lower min-replicas-to-write")
		return
	}
	if n == "0" {
		f.add(Warn, s.subject, "has no connected replica: no server takes over when it is lost", "add or connect a replica, with Sentinel or in a cluster")
		return
	}
	switch {
	case known && least == "0":
		f.ok(s.subject, "replicas: %s; min-replicas-to-write is 0, so a failover may lose the last seconds, which are read again", n)
	case known:
		f.ok(s.subject, "replicas: %s; min-replicas-to-write is %s: with fewer, events wait", n, least)
	default:
		f.ok(s.subject, "replicas: %s", n)
	}
}

func (s *server) clock(f *Findings) {
	off, where := s.skew, "ahead of"
	if off < 0 {
		off, where = -off, "behind"
	}
	found := "its clock is " + off.Round(time.Millisecond).String() + " " + where + " this machine's"
	switch {
	case off >= failSkew:
		f.add(Fail, s.subject, found+": state is dropped too soon or windows end at the wrong moment", "run NTP on both")
	case off >= warnSkew:
		f.add(Warn, s.subject, found, "run NTP on both")
	default:
		f.ok(s.subject, "its clock is this machine's within %s", warnSkew)
	}
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // 0 if not reported
	return n
}
