package server

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// Jars are the jars of a server that runs on Java, which Maven fetches once for a machine.
type Jars struct {
	Name    string // of the server
	POM     []byte // names them, and the version of the server in a property NAME.version
	Witness string // begins the name of the jar that has the version in its name
	Env     string // the environment variable that names a directory with them, else they are in the user's cache
}

// Version returns the version that the POM names.
func (j *Jars) Version() string {
	return string(regexp.MustCompile(`<` + j.Name + `\.version>(.*)</`).FindSubmatch(j.POM)[1])
}

// Lack says what this machine lacks to run them. Jars that can be fetched do not count as missing.
func (j *Jars) Lack() error {
	if err := LackCommand("java", "a Java runtime, 17 or later"); err != nil {
		return err
	}
	home, err := j.home()
	if err != nil {
		return err
	}
	if j.in(home) {
		return nil
	}
	if err := LackCommand("mvn", "Maven"); err != nil {
		return fmt.Errorf("%w, or set %s to a directory with its jars", err, j.Env)
	}
	return nil
}

func (j *Jars) in(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, j.Witness+j.Version()+".jar"))
	return err == nil
}

func (j *Jars) home() (string, error) {
	if home := os.Getenv(j.Env); home != "" {
		return home, nil
	}
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(home, ".cache")
	}
	return filepath.Join(cache, "weir", j.Name+"-"+j.Version()), nil
}

// Fetch returns the directory of the jars, and fetches them if necessary. The tests of several packages may do so at once.
func (j *Jars) Fetch() (string, error) {
	home, err := j.home()
	if err != nil || j.in(home) {
		return home, err
	}
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		return "", err
	}
	part, err := os.MkdirTemp(filepath.Dir(home), filepath.Base(home)+".")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(part) }()
	pom := filepath.Join(part, "pom.xml")
	if err := os.WriteFile(pom, j.POM, 0o600); err != nil {
		return "", err
	}
	out, err := exec.Command("mvn", "--batch-mode", "--quiet", "--file", pom, "dependency:copy-dependencies",
		"-DincludeScope=runtime", "-DoutputDirectory="+part).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("fetch %s with Maven: %w\n%s", j.Name, err, out)
	}
	if err := os.Chmod(part, 0o755); err != nil {
		return "", err
	}
	if err := os.Rename(part, home); err != nil && !j.in(home) { // another process may have been faster
		return "", fmt.Errorf("%s does not hold %s %s: remove it and run this again: %w", home, j.Name, j.Version(), err)
	}
	return home, nil
}
