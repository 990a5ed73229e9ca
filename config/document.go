package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/internal/badyaml"
)

// document is a settings file: the text, or the list of texts, of each setting in it by key, with
// its location.
type document struct {
	name     string
	values   map[string]any // string or []string
	lines    map[string]int
	comments map[string]string
	findings Findings
}

// readDocument reads a settings file. Syntax errors are in the document's findings.
func readDocument(name string, data []byte) *document {
	d := &document{name: name, values: map[string]any{}, lines: map[string]int{}, comments: map[string]string{}}
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; { // a file may have several YAML documents
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			return d
		}
		if err != nil {
			line, why := badyaml.At(data, err)
			d.find(line, "", "is not YAML: %s", why)
			return d
		}
		if len(root.Content) > 0 {
			d.section("", root.Content[0])
		}
	}
}

func (d *document) find(line int, key, format string, args ...any) {
	d.findings = append(d.findings, Finding{Where: fmt.Sprintf("%s:%d", d.name, line), Key: key, Message: fmt.Sprintf(format, args...)})
}

// section reads a mapping whose keys begin with prefix.
func (d *document) section(prefix string, n *yaml.Node) {
	if n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.find(n.Line, prefix, "is a section and needs settings below it")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		for value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		key := name.Value
		if prefix != "" {
			key = prefix + "." + key
		}
		if line, ok := d.lines[key]; ok {
			d.find(name.Line, key, "is already set in line %d", line)
			continue
		}
		d.lines[key] = name.Line
		d.comments[key] = name.HeadComment
		switch {
		case slices.Contains(sections, key):
			d.section(key, value)
		case slices.Contains(keys, key):
			d.value(key, value)
		default:
			d.find(name.Line, key, "is not a setting%s", nearest(key))
		}
	}
}

// value reads the value of a setting; null leaves it at its default.
func (d *document) value(key string, n *yaml.Node) {
	switch {
	case n.Tag == "!!null":
	case n.Kind == yaml.ScalarNode:
		d.values[key] = n.Value
	case n.Kind == yaml.SequenceNode:
		items := []string{}
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				d.find(item.Line, key, "must be a list of plain texts")
				return
			}
			items = append(items, item.Value)
		}
		d.values[key] = items
	default:
		d.find(n.Line, key, "is one setting, not a section")
	}
}

// tree nests the values as viper requires.
func (d *document) tree() map[string]any {
	root := map[string]any{}
	for key, value := range d.values {
		at := root
		path := strings.Split(key, ".")
		for _, name := range path[:len(path)-1] {
			if at[name] == nil {
				at[name] = map[string]any{}
			}
			at = at[name].(map[string]any)
		}
		at[path[len(path)-1]] = value
	}
	return root
}
