// Package blackbox inspects Weir from outside, for tests and trials that run its binary: the URL of
// a process, its metrics, and whether its answers over HTTP equal the model's.
package blackbox
