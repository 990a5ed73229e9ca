//go:build !linux

package server

import "syscall"

// dieWithParent returns nil: only Linux has a parent-death signal. Elsewhere servers stop with
// their test or in Main.
func dieWithParent() *syscall.SysProcAttr { return nil }

// killFamily does nothing: without a process group of its own, only the server is killed.
func killFamily(int) {}
