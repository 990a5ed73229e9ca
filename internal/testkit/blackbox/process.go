package blackbox

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

var listens = regexp.MustCompile(`msg="weir is running".* listen=(\S+)`)

// Listening returns the URL at which a process answers, from its log; ok is false until it listens.
func Listening(log string) (url string, ok bool) {
	found := listens.FindStringSubmatch(log)
	if found == nil {
		return "", false
	}
	return "http://" + found[1], true
}

var broken = regexp.MustCompile(`(?m)^(panic: .*|fatal error: .*|WARNING: DATA RACE|.*this is an error in the program.*)$`)

// Broken returns the part of a log that reports a panic, a data race or another error in the program; "" if there is
// none.
func Broken(log string) string {
	at := broken.FindStringIndex(log)
	if at == nil {
		return ""
	}
	return log[at[0]:min(len(log), at[1]+3000)]
}

// Get reads a URL; the status is 0 if there is no answer.
func Get(url string) (status int, body string) {
	response, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}

// Metric returns the sum of a metric over its labels in the text of /metrics; a non-empty labels is
// a part that its lines must have, such as `outcome="late"`.
func Metric(metrics, name, labels string) (sum float64, err error) {
	for line := range strings.Lines(metrics) {
		series, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || series != name && !strings.HasPrefix(series, name+"{") || !strings.Contains(series, labels) {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", line, err)
		}
		sum += n
	}
	return sum, nil
}
