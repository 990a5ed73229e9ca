// Package group is membership in a consumer group of Kafka's: which partitions
// this process carries, until that changes.
//
// A [Member] joins with Next, which returns a [Generation]: the partitions that
// it was given. Heartbeats go on until Next is called again or the member leaves.
// When the group rebalances, the generation's Done is closed, and the caller calls
// Next again.
//
// Rebalances are cooperative (KIP-429): partitions are shared out evenly, otherwise
// everybody keeps what they have, and goes on with it while the group rebalances. A
// partition that is to move takes two rounds. In the first one its member learns that
// it goes, and the generation is over at once. The member joins without it. As soon
// as all have joined, Next has the caller release it (Config.Release), and the second
// round gives it to another member. So it pauses for some milliseconds and not for
// as long as the members take to join.
//
// Release may come to its end after the new member has begun. Whoever calls must
// bear that two members have a partition for a moment; Weir does, see "The progress
// protocol" in docs/design.md.
//
// A member with an instance ID is static: the broker knows it again after a
// restart, and gives it what it had, if it is back within the session timeout.
// Then nothing moves, and no other member notices. So it does not leave the group
// when it ends; its partitions wait for it for as long as the session timeout.
// Two processes with one instance ID exclude each other: the later one fences the
// one before, which gets a [FencedError].
//
// Requests go over kafka-go's Transport, as those of package fetch do. kafka-go's
// ConsumerGroup knows neither instance IDs nor cooperative rebalances.
package group
