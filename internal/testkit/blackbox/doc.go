// Package blackbox looks at Weir from outside, for tests and trials that run its
// binary: where a process listens, what its metrics say, and whether what it
// answers over HTTP is what the model says.
package blackbox
