package config

import (
	"reflect"
	"regexp"
	"strings"

	"github.com/weir-stream/weir/internal/spelling"
)

// keys are the settings in the order of Config, and sections their groups.
var keys, sections = keysOf(reflect.TypeFor[Config](), "")

func keysOf(t reflect.Type, prefix string) (keys, sections []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		key := prefix + f.Tag.Get("key")
		if f.Type.Kind() != reflect.Struct {
			keys = append(keys, key)
			continue
		}
		k, s := keysOf(f.Type, key+".")
		keys = append(keys, k...)
		sections = append(append(sections, key), s...)
	}
	return keys, sections
}

// field returns the field of the configuration that holds a setting.
func (c *Config) field(key string) reflect.Value {
	v := reflect.ValueOf(c).Elem()
	for name := range strings.SplitSeq(key, ".") {
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("key") == name {
				v = v.Field(i)
				break
			}
		}
	}
	return v
}

// envName returns the environment variable of a setting.
func envName(key string) string {
	return "WEIR_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// foreign matches variables that begin with WEIR_ and are not settings: those of the tests, and
// those that Kubernetes and Docker make for a service whose name begins with "weir".
var foreign = regexp.MustCompile(`^WEIR_(TEST_.*|(KAFKA|IGNITE)_HOME|(.+_)?(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_.+)?)?))$`)

// nearest returns the end of a message about an unknown key: the most similar one.
func nearest(key string) string {
	base := func(k string) string { return k[strings.LastIndexByte(k, '.')+1:] }
	for _, k := range append(keys, sections...) {
		if base(k) == base(key) {
			return "; did you mean " + k + "?"
		}
	}
	return closest(key, append(keys, sections...))
}

// closest suggests the name that was probably meant, if there is one.
func closest(name string, names []string) string {
	if near := spelling.Nearest(name, names); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
