package window

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDefaultTile(t *testing.T) {
	for window, want := range map[string]string{
		"30d": "1d", "2d": "1d", "1w": "1d", "1d": "1h", "24h": "1h", "36h": "1m", "23h": "1m", "1h": "1m",
		"90m": "1s", "5m": "1s", "60s": "1s", "90s": "100ms", "30s": "100ms", "1s": "100ms",
	} {
		w, err := ParseDuration(window)
		if err != nil {
			t.Fatal(err)
		}
		if got := FormatDuration(defaultTile(w)); got != want {
			t.Errorf("%s has tiles of %s, want %s", window, got, want)
		}
		if err := checkTile(w, defaultTile(w)); err != nil {
			t.Errorf("%s: %s", window, err)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0s": 0, "1ms": time.Millisecond, "90m": 90 * time.Minute, "1h30m": 90 * time.Minute,
		"2w": 14 * Day, "1w1d1h1m1s1ms": 8*Day + time.Hour + time.Minute + time.Second + time.Millisecond,
		"36500d": Longest, "007d": 7 * Day,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%s is %s (%v), want %s", text, got, err, want)
		}
	}
	const bad = ": write whole numbers with ms, s, m, h, d or w, such as 7d or 90m"
	for text, want := range map[string]string{
		"":                       `bad duration ""` + bad,
		"7":                      `bad duration "7"` + bad,
		"d":                      `bad duration "d"` + bad,
		"-1d":                    `bad duration "-1d"` + bad,
		"1.5h":                   `bad duration "1.5h"` + bad,
		"1m1h":                   `bad duration "1m1h"` + bad,
		"1h1h":                   `bad duration "1h1h"` + bad,
		"1y":                     `bad duration "1y"` + bad,
		"1D":                     `bad duration "1D"` + bad,
		"1h ":                    `bad duration "1h "` + bad,
		"99999999999999999999ms": `bad duration "99999999999999999999ms"` + bad,
		"36500d1ms":              `duration "36500d1ms" is longer than 36500d`,
		"9223372036854775807w":   `duration "9223372036854775807w" is longer than 36500d`,
	} {
		if d, err := ParseDuration(text); err == nil || err.Error() != want {
			t.Errorf("%s is %s (%v), want the error %s", text, d, err, want)
		}
	}
}

func TestDurationRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Milliseconds(rapid.Int64Range(0, Longest.Milliseconds()).Draw(t, "ms"))
		if got, err := ParseDuration(FormatDuration(d)); err != nil || got != d {
			t.Fatalf("%s is written %s and read back as %s (%v)", d, FormatDuration(d), got, err)
		}
	})
}

// A duration is written in the widest unit up to days that divides it.
func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		7 * Day: "7d", 36 * time.Hour: "36h", 90 * time.Minute: "90m", time.Second: "1s", 1500 * time.Millisecond: "1500ms", 0: "0s",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
