// Package group implements membership in a Kafka consumer group: it tells which partitions this process owns, and when
// that changes.
//
// A [Member] joins with Next, which returns a [Generation]: the partitions that
// it was assigned. Heartbeats continue until Next is called again or the member leaves.
// When the group rebalances, the generation's Done is closed, and the caller calls
// Next again.
//
// Rebalances are cooperative (KIP-429): partitions are distributed evenly, otherwise members keep what they have and
// continue with it during the rebalance. A partition that moves takes two rounds. In the first, its member learns that
// it goes, and the generation is over at once. The member joins without it. As soon as all have joined, Next makes the
// caller release it (Config.Release), and the second round assigns it to another member. So it pauses only for some
// milliseconds, and not for as long as the members take to join.
//
// Release may end after the new member has begun. The caller must
// tolerate that two members own a partition for a moment; Weir does, see "The progress
// protocol" in docs/exactly-once.md.
//
// A member with an instance ID is static: the broker recognizes it after a restart, and assigns it what it had, if it
// is back within the session timeout. Then nothing moves, and no other member notices. It does not leave the group when
// it ends: its partitions wait for it during the session timeout. Two processes with the same instance ID exclude each
// other: the later one fences the earlier one, which gets a [FencedError].
//
// Requests go over kafka-go's Transport, as those of package fetch do. kafka-go's
// ConsumerGroup supports neither instance IDs nor cooperative rebalances.
package group
