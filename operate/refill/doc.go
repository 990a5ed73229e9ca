// Package refill reads the log for one entity, to compute what the records that were applied up to
// some offsets contribute to its state, and to that of its embedded children. See docs/answers.md,
// "Damaged keys".
package refill
