//go:build !linux

package server

import "syscall"

// dieWithParent: only Linux has a parent-death signal. Elsewhere servers end
// with their test or in Main.
func dieWithParent() *syscall.SysProcAttr { return nil }

// killFamily: without a process group of its own a server is killed alone.
func killFamily(int) {}
