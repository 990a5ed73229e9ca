package blackbox

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

var listens = regexp.MustCompile(`msg="weir runs".* listen=(\S+)`)

// Listening is the URL at which a process answers, found in its log; ok is false
// while it does not listen yet.
func Listening(log string) (url string, ok bool) {
	found := listens.FindStringSubmatch(log)
	if found == nil {
		return "", false
	}
	return "http://" + found[1], true
}

var broken = regexp.MustCompile(`(?m)^(panic: .*|fatal error: .*|WARNING: DATA RACE)$`)

// Broken is where a process says in its log that it panicked or has a data race; ""
// if it does not.
func Broken(log string) string {
	at := broken.FindStringIndex(log)
	if at == nil {
		return ""
	}
	return log[at[0]:min(len(log), at[1]+3000)]
}

// Get reads a URL; the status is 0 when nobody answers.
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

// Metric is the sum of a series over its labels in what /metrics says; labels, if
// any, are a part of its line that must be there, such as `outcome="late"`.
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
