package doctor

import (
	"bufio"
	"fmt"
	"strings"
)

// ParseInfo parses the reply to Redis' INFO.
func ParseInfo(text string) map[string]string {
	info := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok {
			info[key] = value
		}
	}
	return info
}

// Supported reports whether a version of Redis is 6.2 or later.
func Supported(version string) error {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("does not report its version (%q)", version)
	}
	if major < 6 || major == 6 && minor < 2 {
		return fmt.Errorf("version %s is too old: 6.2 or later is needed", version)
	}
	return nil
}
