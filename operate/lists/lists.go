// Package lists makes and shows the entries of lists.
package lists

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/tables"
	"github.com/weir-stream/weir/value"
)

// Entry is an entry of a list.
type Entry struct {
	Value string     `json:"value"`
	Since time.Time  `json:"since"`           // when it was written
	Until *time.Time `json:"until,omitempty"` // from when on it no longer counts
	Who   string     `json:"who,omitempty"`   // wrote it
	Why   string     `json:"why,omitempty"`
}

// written is a record of a list's topic; see features.NewList.
type written struct {
	List    string          `json:"list"`
	Value   json.RawMessage `json:"value"`
	Until   *time.Time      `json:"until,omitempty"`
	Who     string          `json:"who,omitempty"`
	Why     string          `json:"why,omitempty"`
	Removed bool            `json:"removed,omitempty"`
}

// Record returns the key and the value of the record that adds an entry to a list, or removes it. It fails if the list would
// not take it.
func Record(list *features.Table, e Entry, remove bool) (Written, error) {
	switch {
	case e.Value == "":
		return Written{}, errors.New("the value is empty")
	case !remove && strings.TrimSpace(e.Value) != e.Value: // one that is in the list can be removed
		return Written{}, fmt.Errorf("%q begins or ends with white space: leave that out", e.Value)
	case !utf8.ValidString(e.Value + e.Who + e.Why):
		return Written{}, fmt.Errorf("%q is not valid UTF-8", e.Value+e.Who+e.Why)
	}
	for _, text := range []struct{ what, is string }{{"value", e.Value}, {"reason", e.Why}, {"name of who changes it", e.Who}} {
		if len(text.is) > value.MaxText {
			return Written{}, fmt.Errorf("the %s has %d bytes, more than %d", text.what, len(text.is), value.MaxText)
		}
	}
	w := written{List: list.Name, Until: e.Until, Who: e.Who, Why: e.Why, Removed: remove}
	if list.Networks {
		network, err := features.ParseNetwork(e.Value)
		if err != nil {
			return Written{}, err
		}
		e.Value = network.String()
	}
	if list.Rows.Fields[features.ListValue].Type == value.Int {
		n, err := strconv.ParseInt(e.Value, 10, 64)
		if err != nil {
			return Written{}, fmt.Errorf("%q is not a whole number of 64 bits, as the values of list %s are", e.Value, list.Name)
		}
		e.Value = strconv.FormatInt(n, 10)
		w.Value = json.RawMessage(e.Value)
	} else {
		w.Value, _ = json.Marshal(e.Value) // a text in UTF-8
	}
	content, err := json.Marshal(w)
	if err != nil {
		return Written{}, err
	}
	key := []byte(features.ListKey(list.Name, e.Value))
	bad, err := tables.New(list).Take(&record.Record{Key: key, Value: content, Partition: state.Partition{Topic: list.Rows.Topic}})
	if bad != nil {
		err = bad
	}
	return Written{e.Value, key, content}, err
}

// Entries returns the entries that count at a moment, by their values; all if values is empty, else those.
func Entries(c *tables.Contents, list *features.Table, at time.Time, values []string) (entries []Entry) {
	asked := map[string]bool{}
	for _, v := range values {
		if network, err := features.ParseNetwork(v); list.Networks && err == nil {
			v = network.String()
		}
		asked[v] = true
	}
	for _, row := range c.All(at.UnixMilli()) {
		text := func(field int) string { return string(row.Values[field].AppendText(nil)) }
		e := Entry{Value: text(features.ListValue), Since: time.UnixMilli(row.Time).UTC(), Who: text(features.ListWho), Why: text(features.ListWhy)}
		if len(values) > 0 && !asked[e.Value] || !list.Holds(row, at.UnixMilli()) {
			continue
		}
		if until := row.Values[features.ListUntil]; !until.IsNull() {
			at := time.UnixMilli(until.Num).UTC()
			e.Until = &at
		}
		entries = append(entries, e)
	}
	return entries
}

// WriteText writes entries as a table.
func WriteText(out io.Writer, entries []Entry) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "VALUE\tSINCE\tUNTIL\tWHO\tWHY") // Flush returns the error
	for _, e := range entries {
		until := "-"
		if e.Until != nil {
			until = e.Until.Format(time.RFC3339)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", spelling.Visible(e.Value), e.Since.Format(time.RFC3339), until, spelling.Visible(e.Who), spelling.Visible(e.Why))
	}
	return w.Flush()
}
