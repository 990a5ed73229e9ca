package definition

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// hostFiles are the files of this machine, under their usual paths.
type hostFiles struct{}

func (hostFiles) Open(name string) (fs.File, error) { return os.Open(name) }

// filesOf are the files of definitions that a path stands for: itself, or the
// *.yaml and *.yml files of a folder.
func filesOf(fsys fs.FS, name string) ([]string, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	entries, err := fs.ReadDir(fsys, name)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if ext := path.Ext(e.Name()); !e.IsDir() && (ext == ".yaml" || ext == ".yml") {
			names = append(names, path.Join(name, e.Name()))
		}
	}
	return names, nil
}

// Fingerprint is a hash of all that Load reads of these paths, and of what
// cannot be read of them. It changes when one of the files does, however it was
// replaced.
func Fingerprint(paths ...string) string {
	hash := sha256.New()
	for _, p := range paths {
		names, err := filesOf(hostFiles{}, p)
		fmt.Fprintf(hash, "%q %v\n", p, err)
		for _, name := range names {
			data, err := os.ReadFile(name)
			fmt.Fprintf(hash, "%q %v %d\n", name, err, len(data))
			hash.Write(data)
		}
	}
	return string(hash.Sum(nil))
}
