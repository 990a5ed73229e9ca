package blackbox

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/value"
)

// Trained compares a training set, with a row for every entity of every feature at a moment, with the model. train
// makes it, with what it says of the quality of each value, of the features with these names from a spine; both are
// CSV. Features that answer with lists, which CSV cannot hold, or about members are left out.
func (c *Comparison) Trained(r *features.Registry, at int64, train func(names []string, spine []byte) (set []byte, err error)) {
	c.T.Helper()
	var s spine
	for _, group := range c.groups(r) {
		s.add(c, group)
	}
	set, err := train(s.names(), s.text(at))
	if err != nil {
		c.differs("a training set: %v", err)
		return
	}
	rows, err := csv.NewReader(bytes.NewReader(set)).ReadAll()
	if err != nil || len(rows) != len(s.rows)+1 {
		c.differs("a training set of %d entities has %d lines, error %v", len(s.rows), len(rows), err)
		return
	}
	for i, row := range s.rows {
		cells := map[string]string{}
		for column, name := range rows[0] {
			cells[name] = rows[i+1][column]
		}
		for _, f := range row.of {
			want := c.want(f, row.entity, at)
			got, err := trainedAnswer(f, want, func(suffix string) string { return cells[f.Name+suffix] })
			c.Compared++
			difference := fmt.Sprint(err)
			if err == nil {
				difference = Differs(got, f, want)
			}
			if difference != "" {
				c.differs("%s of %s at %d in a training set: %s (%s)", f.Name, row.entity, at, difference, f.Definition)
			}
		}
	}
}

// spine is a file of entities. A row is of one entity, and has nulls for the keys of others.
type spine struct {
	keys []string
	rows []spineRow
}

type spineRow struct {
	entity string
	of     []*features.Feature // with the same keys, which the entity has
}

func (s *spine) add(c *Comparison, group []*features.Feature) {
	var of []*features.Feature
	entities := map[string]bool{}
	for _, f := range group {
		if shape := f.Shape(); f.Membership() == aggregate.MembersRequired || shape != aggregate.Scalar && shape != aggregate.Categories {
			continue
		}
		of = append(of, f)
		for _, entity := range c.Model.Entities(f) {
			entities[entity] = true
		}
	}
	if len(of) == 0 {
		return
	}
	for _, by := range of[0].By {
		if !slices.Contains(s.keys, by) {
			s.keys = append(s.keys, by)
		}
	}
	for _, entity := range slices.Sorted(maps.Keys(entities)) {
		s.rows = append(s.rows, spineRow{entity, of})
	}
}

// names returns the names of the features, each once.
func (s *spine) names() (names []string) {
	seen := map[string]bool{}
	for _, row := range s.rows {
		for _, f := range row.of {
			if !seen[f.Name] {
				seen[f.Name] = true
				names = append(names, f.Name)
			}
		}
	}
	return names
}

// text returns the spine as CSV, with rows of one moment.
func (s *spine) text(at int64) []byte {
	var b bytes.Buffer
	for _, key := range s.keys {
		fmt.Fprintf(&b, "%s,", key)
	}
	b.WriteString("at\n")
	for _, row := range s.rows {
		keys := map[string]string{}
		for i, text := range splitEntity(row.entity) {
			keys[row.of[0].By[i]] = `"` + strings.ReplaceAll(text, `"`, `""`) + `"` // an empty text is no null
		}
		for _, key := range s.keys {
			fmt.Fprintf(&b, "%s,", keys[key])
		}
		fmt.Fprintln(&b, at)
	}
	return b.Bytes()
}

// trainedAnswer returns what a row says of a feature as an answer; cell returns the feature's cell with a suffix.
// Whether a value is exact follows from the rest.
func trainedAnswer(f *features.Feature, want aggregate.Result, cell func(suffix string) string) (a Answer, err error) {
	a.Status, a.Capped = query.Status(cell("_status")), cell("_capped") == "true"
	if text := cell("_error"); text != "" && (f.Spec == nil || f.Call.Error == 0) {
		if a.StandardError, err = strconv.ParseFloat(text, 64); err != nil {
			return a, err
		}
	}
	if f.MayBeUncertain() {
		if a.Uncertain, err = strconv.ParseInt(cell("_uncertain"), 10, 64); err != nil {
			return a, err
		}
	}
	text := cell("")
	switch {
	case text == "" && (want.Value.Type != value.String || a.Status != query.Present):
		text = "null"
	case f.Shape() == aggregate.Categories:
	case want.Value.Type == value.String:
		text = quoted([]byte(text))
	case want.Value.Type == value.Location:
		lat, lon, _ := strings.Cut(text, ",")
		text = fmt.Sprintf(`{"lat":%s,"lon":%s}`, lat, lon)
	}
	a.Value = json.RawMessage(text)
	precise, _ := precision(f)
	a.Exact = precise && a.StandardError == 0 && a.Uncertain == 0 && !a.Capped
	return a, nil
}
