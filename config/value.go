package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Bytes is a size, written as a number of bytes or with KiB, MiB or GiB.
type Bytes int64

var units = []struct {
	name string
	size Bytes
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// String writes the size in the greatest unit that divides it.
func (b Bytes) String() string {
	for _, u := range units {
		if b != 0 && b%u.size == 0 && u.size > 1 {
			return fmt.Sprintf("%d%s", b/u.size, u.name)
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// ParseBytes reads a size such as 4096, 512KiB or 1MiB; it is never negative.
func ParseBytes(text string) (Bytes, error) {
	number, size := text, Bytes(1)
	for _, u := range units {
		if n, ok := strings.CutSuffix(text, u.name); ok {
			number, size = strings.TrimSpace(n), u.size
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/int64(size) {
		return 0, errors.New("is not a size such as 4096, 512KiB or 1MiB")
	}
	return Bytes(n) * size, nil
}

const redacted = "[redacted]"

// Secret is a password. It is printed, logged and marshalled as "[redacted]",
// or as nothing when it is empty; string(s) is the password itself.
type Secret string

// String hides the password.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// Format hides the password under every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue hides the password in logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the password in JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func isSecret(field reflect.Value) bool { return field.Type() == reflect.TypeFor[Secret]() }

// parse puts a setting into its field: a text or, from a file, a list of texts. The error ends a sentence that begins
// with the text.
func parse(field reflect.Value, raw any) error {
	list, isList := raw.([]string)
	text, _ := raw.(string)
	if p, ok := field.Addr().Interface().(*[]string); ok {
		if isList {
			*p = list
		} else {
			*p = splitList(text)
		}
		return nil
	}
	if isList {
		return errors.New("is a list, not one value")
	}
	switch p := field.Addr().Interface().(type) {
	case *string:
		*p = text
	case *Secret:
		*p = Secret(text)
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return errors.New("is not a whole number")
		}
		*p = n
	case *float64:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return errors.New("is not a number")
		}
		*p = n
	case *bool:
		if text != "true" && text != "false" {
			return errors.New("is neither true nor false")
		}
		*p = text == "true"
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return errors.New("is not a duration such as 5ms, 1s or 2m")
		}
		*p = d
	case *Bytes:
		b, err := ParseBytes(text)
		if err != nil {
			return err
		}
		*p = b
	default:
		panic(fmt.Sprintf("config: no way to read a %s", field.Type()))
	}
	return nil
}

// addedUp is the flag of a list to which each use of the flag adds.
type addedUp []string

func (a *addedUp) String() string { return strings.Join(*a, ",") }

func (a *addedUp) Set(text string) error {
	*a = append(*a, text)
	return nil
}

// Type is what the help calls the value. It is not a type that viper converts.
func (a *addedUp) Type() string { return "string" }

// splitList reads a list from the environment or a flag: items with commas
// between them.
func splitList(text string) []string {
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// show writes the value of a setting for a message.
func show(field reflect.Value) string {
	switch v := field.Interface().(type) {
	case []string:
		return "[" + withoutPasswords(strings.Join(v, ", ")) + "]"
	case string:
		return strconv.Quote(withoutPasswords(v))
	default:
		return fmt.Sprint(v)
	}
}

// userInfo matches the user and the password of a URL.
var userInfo = regexp.MustCompile(`://\S*@`)

// withoutPasswords returns a value for a message: a URL may hold a password, also where none is allowed.
func withoutPasswords(text string) string { return userInfo.ReplaceAllString(text, "://…@") }
