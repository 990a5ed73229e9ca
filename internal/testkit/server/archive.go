package server

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// java identifies the java on PATH: another one cannot use an archive. It may be a shim, so it is asked.
var java = sync.OnceValue(func() string {
	version, _ := exec.Command("java", "-version").CombinedOutput() // a java that cannot say it cannot start a server either
	return fmt.Sprintf("%x", sha256.Sum256(version))[:12]
})

// Archive returns the flag with which a JVM takes a server's classes from an archive in home, the directory of its jars: loading and
// verifying them is half of what the start of a server computes. The archive is made once for a machine and a java, when the
// server that start starts in dir with a flag ends.
//
// Without the archive all works as well. So there is no flag while another test binary makes it, or where making it has failed, and
// no flag fails a JVM: it ignores an archive that it cannot use, such as one of other jars. But part of one crashes it, so the file
// comes by rename.
func Archive(home string, start func(dir, flag string) (*Process, error)) (flags []string) {
	if runtime.GOOS == "windows" { // which has no SIGTERM
		return nil
	}
	file := filepath.Join(home, "classes-"+java()+".jsa")
	flags = []string{"-XX:SharedArchiveFile=" + file}
	if _, err := os.Stat(file); err == nil {
		return flags
	}
	// Only one can make this directory. After a failure it stays, with the log: not every start should try again.
	making := file + ".making"
	if err := os.Mkdir(making, 0o700); err != nil {
		if info, err := os.Stat(making); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.RemoveAll(making) // for the next
		}
		return nil
	}
	part := filepath.Join(making, "part")
	p, err := start(making, "-XX:ArchiveClassesAtExit="+part)
	if err != nil || p.End(syscall.SIGTERM) != nil || p.ExitCode() != 128+int(syscall.SIGTERM) || os.Rename(part, file) != nil {
		return nil
	}
	_ = os.RemoveAll(making)
	return flags
}
