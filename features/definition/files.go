package definition

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
)

// hostFiles is the file system of this machine, by the usual paths.
type hostFiles struct{}

func (hostFiles) Open(name string) (fs.File, error) { return os.Open(name) }

// IsTest reports whether a file holds tests, by its name, *_test.yaml. Such files lie beside definitions and contain
// none.
func IsTest(name string) bool {
	return strings.HasSuffix(name, "_test.yaml") || strings.HasSuffix(name, "_test.yml")
}

// filesOf lists the definition files of a path: the file itself, or the *.yaml and *.yml files of a
// folder that are not tests.
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
		if ext := path.Ext(e.Name()); !e.IsDir() && (ext == ".yaml" || ext == ".yml") && !IsTest(e.Name()) {
			names = append(names, path.Join(name, e.Name()))
		}
	}
	return names, nil
}

// beside reads a file that the definitions in another file name.
func (l *streams) beside(definitions, name string) ([]byte, error) {
	from := besidePath(definitions, name)
	content, err := l.readFile(from)
	if err == nil && !slices.ContainsFunc(l.registry.Files.Schemas, func(s features.File) bool { return s.Path == from }) {
		l.registry.Files.Schemas = append(l.registry.Files.Schemas, features.File{Path: from, Text: string(content)})
	}
	return content, err
}

func besidePath(definitions, name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(path.Dir(definitions), name)
}

// fileExtensions are those of the files that options name, and fileEnd matches where such a name may end. Matching is slow,
// so only texts with one of the extensions are searched.
var (
	fileExtensions [][]byte
	fileEnd        = func() *regexp.Regexp {
		var ends []string
		for _, f := range record.Formats {
			for _, o := range f.Options {
				if o.File != "" {
					fileExtensions = append(fileExtensions, []byte(o.File))
					ends = append(ends, regexp.QuoteMeta(o.File))
				}
			}
		}
		return regexp.MustCompile(`(` + strings.Join(ends, "|") + `)\b`)
	}()
)

// namedFiles returns what may be names of files in definitions: before the end of a name the last word, and what follows
// the last mark of YAML or the last quote in the line, because a name may have spaces.
func namedFiles(definitions []byte) (names [][]byte) {
	if !slices.ContainsFunc(fileExtensions, func(end []byte) bool { return bytes.Contains(definitions, end) }) {
		return nil
	}
	for _, end := range fileEnd.FindAllIndex(definitions, -1) {
		line := bytes.LastIndexByte(definitions[:end[0]], '\n') + 1
		for _, before := range [][]string{{" ", "\t", `"`, "'", "[", "]", "{", "}", ","}, {": ", "- ", "[", "{", ","}, {`"`, "'"}} {
			from := line
			for _, mark := range before {
				if at := bytes.LastIndex(definitions[line:end[0]], []byte(mark)); at >= 0 {
					from = max(from, line+at+len(mark))
				}
			}
			names = append(names, bytes.TrimSpace(definitions[from:end[1]]))
		}
	}
	return names
}

// Fingerprint returns a hash of everything that Load reads from these paths, of the files that options of formats name,
// and of read errors. It changes with the content of any of the files.
func Fingerprint(paths ...string) string {
	hash := sha256.New()
	for _, p := range paths {
		names, err := filesOf(hostFiles{}, p)
		fmt.Fprintf(hash, "%q %v\n", p, err)
		for _, name := range names {
			data, err := os.ReadFile(name)
			fmt.Fprintf(hash, "%q %v %d\n", name, err, len(data))
			hash.Write(data)
			for _, file := range namedFiles(data) {
				content, err := os.ReadFile(besidePath(name, string(file)))
				fmt.Fprintf(hash, "%q %v %d\n", file, err, len(content))
				hash.Write(content)
			}
		}
	}
	return string(hash.Sum(nil))
}
