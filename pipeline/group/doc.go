// Package group is membership in a consumer group of Kafka's: which partitions
// this process carries, until that changes.
//
// A [Member] joins with Next, which returns a [Generation]: the partitions that
// it was given. Heartbeats go on until Next is called again or the member leaves.
// When the group rebalances, the generation's Done is closed; the caller finishes
// what it has under way, within the rebalance timeout, and calls Next.
//
// Partitions are shared out by Kafka's sticky strategy: evenly, and otherwise
// everybody keeps what they had.
//
// A member with an instance ID is static: the broker knows it again after a
// restart, and gives it what it had, if it is back within the session timeout.
// Then nothing moves, and no other member notices. So it does not leave the group
// when it ends; its partitions wait for it for as long as the session timeout.
// Two processes with one instance ID exclude each other: the later one fences the
// one before, which gets a [FencedError].
//
// Requests go over kafka-go's Transport, as those of package fetch do. kafka-go's
// ConsumerGroup knows neither instance IDs nor the sticky strategy.
package group
