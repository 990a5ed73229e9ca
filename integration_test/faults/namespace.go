package main

import (
	"slices"
	"strconv"

	"github.com/weir-stream/weir/integration_test/faults/workload"
	"github.com/weir-stream/weir/state"
)

const deadLetters = "dead-letters"

// namespace returns the round's namespace in Redis and the name of its consumer group.
func (r *round) namespace() string { return "faults" + r.suffix + r.again }

// topics returns the topics of the round with their numbers of partitions.
func (r *round) topics() map[string]int {
	return map[string]int{
		workload.Payments + r.suffix: r.scenario.Partitions, workload.Logins + r.suffix: 1,
		workload.Merchants + r.suffix: 2, workload.Lists + r.suffix: 1, workload.Enriched + r.suffix: 1, deadLetters + r.suffix: 1,
	}
}

// partitions returns the partitions of the round's events.
func (r *round) partitions() []state.Partition {
	return append(partitionsOf(workload.Payments+r.suffix, r.scenario.Partitions), partitionsOf(workload.Logins+r.suffix, 1)...)
}

// rowPartitions returns the partitions of the rows of tables and lists.
func (r *round) rowPartitions() []state.Partition {
	return append(partitionsOf(workload.Merchants+r.suffix, 2), partitionsOf(workload.Lists+r.suffix, 1)...)
}

// partitionsOf returns the partitions of a topic.
func partitionsOf(topic string, n int) (all []state.Partition) {
	for id := range n {
		all = append(all, state.Partition{Topic: topic, ID: int32(id)})
	}
	return all
}

// settings returns the flags with which processes and commands reach the round's namespace.
func (r *round) settings() []string {
	return slices.Concat([]string{
		"--namespace", r.namespace(), "--shards", strconv.Itoa(r.scenario.Shards), "--kafka.group", r.namespace(),
		"--kafka.dead_letter_topic", deadLetters + r.suffix,
	}, r.kafka.Settings(), r.storeSettings())
}

// storeSettings returns the flags that name the store.
func (r *round) storeSettings() []string {
	if r.ignite != nil {
		return r.ignite.Settings()
	}
	return r.redis.Settings()
}

// settings returns the flags of every process: short timeouts for groups, small batches.
func (p *scenario) settings() []string {
	return []string{
		"--kafka.session_timeout", "2s", "--kafka.heartbeat_interval", "300ms", "--kafka.rebalance_timeout", "10s",
		"--processor.commit_interval", "100ms", "--processor.batch.max_events", strconv.Itoa(p.BatchMax), "--store.call_mutations", strconv.Itoa(p.CallMax),
		"--api.timeout", "30s", // the comparison asks big questions, and the machine may be busy
	}
}
