// Package redisstore is the store that keeps state in Redis; nothing else knows Redis.
// Its name differs from its folder's because who uses it often uses the client too.
//
// Everything that a group of series holds of an entity stands packed in one
// string; see package state. It is written by appending and read whole. When it
// has grown it is compacted, which changes no answer.
//
// State is spread over a fixed number of shards by the hash of the entity. One
// script call applies one batch's operations of one shard and moves, in the
// same step, the shard's progress: for each partition the next offset to
// apply. What was applied and how far are therefore never apart, whatever is
// killed, resent, failed over or restored; see writer.Apply.
//
// Reading takes one pipeline and never writes.
package redisstore
