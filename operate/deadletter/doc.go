// Package deadletter lists dead letters and replays them: it writes their original
// records back to the topics they came from.
//
// A replay counts each event once, even if it is killed. For each dead letter it
// writes the original record and a receipt in one Kafka transaction. The receipt names
// the source of the letter and is written to the dead-letter topic itself. A replay first
// takes over the transactional ID, which fences any other replay for good, and only then
// reads the topic: a letter with a receipt has been replayed, one without has not. The
// pipeline writes letters at least once; two letters of one event have the same source and
// are replayed once.
//
// Retention removes the oldest records of a partition first. A receipt is in the same
// partition as its letter and after it, so it outlives the letter.
package deadletter
