// Package deadletter lists the records that were set aside, and replays them:
// it puts the original records back on the topics they came from.
//
// A replay counts each event once, whatever is killed. For each dead letter it
// writes the original record and a receipt, which names the source of the
// letter and stands in the dead-letter topic itself, in one Kafka transaction.
// Whoever replays first takes the transactional ID, which ends what another
// replay has under way for good, and only then reads the topic: a letter with a
// receipt has been replayed, one without has not. A letter that stands there
// twice, for the pipeline writes them at least once, has one source and is
// replayed once.
//
// Retention removes the oldest records of a partition first. A receipt stands
// behind the letter in the letter's own partition, so it outlives the letter.
package deadletter
