// Package timerslack allows the kernel to end the sleep of a thread late, so that a process that is mostly idle is woken
// less often.
package timerslack
