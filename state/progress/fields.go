package progress

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/weir-stream/weir/state"
)

// The fields of a record:
//
//	<topic>@<version>/<id>        position of the partition, which only the plan of that version may apply
//	<topic>@<version>             end of the epochs of a past plan: the greatest timestamp of the records that it may have
//	                              applied; for the version "!", of the records that no plan applied: a gap
//	since:<topic>/<id>            when the current plan claimed the partition, or a gap was last recorded before its position, in
//	                              ms by the clock of the store
//	topic:<topic>                 log, and number of partitions, of the topic when it was first seen
//	log:<log>                     cluster ID / topic ID of a log
//	range:<fill>:<topic>/<id>     what a fill has to apply of the partition, see filling
//	fill:<fill>:<topic>/<id>      position up to which the fill has applied that
//	archive:<cut>:<archive>       number of rows of an archive, and the event time in ms since which it has all events
//	fill:<fill>:archive:<archive>/0  position up to which the fill has applied its rows
//	now                           greatest timestamp of a record applied, in ms
//	lag                           least time by which that was behind the clock, in ms
//	evicted                       run of the server, and number of keys that it had evicted when that was last recorded
//	ahead                         greatest time, in ms, that the clock of the server has shown while it was ahead, and "now" when
//	                              that was noticed
//	change                        name of the last change by a step
//	begun                         the shard had no state, so it may get its first position; one that has a position has begun, too
//
// A store may keep further fields in the record. Topics and versions contain none of "@/:", IDs of fills and archives no ':'.
const (
	sincePrefix, topicPrefix, logPrefix    = "since:", "topic:", "log:"
	rangePrefix, fillPrefix, archivePrefix = "range:", "fill:", "archive:"
	newestField, lagField                  = "now", "lag"
	evictedField, aheadField, begunField   = "evicted", "ahead", "begun"
)

// FieldError is the error about a field of a record.
type FieldError struct {
	Name, Value string
	Err         error
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("the field %s of the progress is %q: %v", e.Name, e.Value, e.Err)
}

func (e *FieldError) Unwrap() error { return e.Err }

var (
	errNoTime    = errors.New("not a time in ms")
	errTwice     = errors.New("another plan has the partition, too")
	errNoArchive = errors.New("not a number of rows and a time")
	errNowhere   = errors.New("not a position")
	errPartition = errors.New("its name has no partition")
	errID        = errors.New("its name has no ID")
)

// parse adds a field to the record.
func (r *Record) parse(name, value string) (err error) {
	kind, rest, prefixed := strings.Cut(name, ":")
	switch {
	case !prefixed:
		return r.parseUnprefixed(name, value)
	case kind+":" == sincePrefix:
		p, err := parsePartition(rest)
		if err != nil {
			return err
		}
		r.since[p], err = parseTime(value)
		return err
	case kind+":" == topicPrefix:
		r.topics[rest], err = state.ParseFirstSeen(value)
		return err
	case kind+":" == logPrefix:
		r.logs[rest] = state.ParseLogID(value)
	case kind+":" == rangePrefix:
		f, err := r.parseFill(rest)
		if err != nil {
			return err
		}
		return f.parse(value)
	case kind+":" == fillPrefix:
		return r.parseFillPosition(rest, value)
	case kind+":" == archivePrefix:
		cut, id, _ := strings.Cut(rest, ":")
		if !isID(cut) || !isID(id) {
			return errID
		}
		r.archives[archiveKey{cut, id}], err = parseArchive(value)
		return err
	default:
		r.others[name] = value
	}
	return nil
}

func parseArchive(text string) (a archive, err error) {
	rows, since, _ := strings.Cut(text, ";")
	var err2 error
	a.rows, err = parseTime(rows)
	if a.since, err2 = parseTime(since); err != nil || err2 != nil {
		return a, errNoArchive
	}
	return a, nil
}

func (r *Record) parseUnprefixed(name, value string) (err error) {
	under, id, isPosition := strings.Cut(name, "/")
	topic, version, ofPlan := strings.Cut(under, "@")
	switch {
	case isPosition:
		p, err := parsePartition(topic + "/" + id)
		if err != nil {
			return err
		}
		if r.held[p] != nil {
			return errTwice
		}
		h := &Holding{Plan: version}
		r.held[p] = h
		h.At, err = parsePosition(value)
		return err
	case ofPlan:
		r.ends[Epoch{topic, version}], err = parseTime(value)
	case name == newestField:
		var newest int64
		newest, err = parseTime(value)
		r.newest = &newest
	case name == lagField:
		var lag int64
		lag, err = parseTime(value)
		r.lag = &lag
	case name == evictedField:
		r.evicted = value
	case name == aheadField:
		r.ahead, err = parseAhead(value)
	default:
		r.others[name] = value
	}
	return err
}

// parseFillPosition adds the position of a fill, in a partition or in an archive.
func (r *Record) parseFillPosition(rest, value string) (err error) {
	if fill, archive, ofRows := strings.Cut(rest, ":"+archivePrefix); ofRows {
		archive, ofRows = strings.CutSuffix(archive, "/0")
		if !ofRows || !isID(fill) || !isID(archive) {
			return errID
		}
		r.rows[rowsKey{fill, archive}], err = parsePosition(value)
		return err
	}
	f, err := r.parseFill(rest)
	if err != nil {
		return err
	}
	f.at, err = parsePosition(value)
	return err
}

// parseFill returns the filling that a name is about.
func (r *Record) parseFill(rest string) (*filling, error) {
	id, partition, _ := strings.Cut(rest, ":")
	if !isID(id) {
		return nil, errID
	}
	p, err := parsePartition(partition)
	if err != nil {
		return nil, err
	}
	k := fillKey{id, p}
	if r.fillings[k] == nil {
		r.fillings[k] = &filling{at: state.NoPosition}
	}
	return r.fillings[k], nil
}

func parsePartition(text string) (state.Partition, error) {
	topic, id, _ := strings.Cut(text, "/")
	n, err := strconv.ParseInt(id, 10, 32)
	if err != nil || topic == "" || strings.ContainsAny(topic, "@:") {
		return state.Partition{}, errPartition
	}
	return state.Partition{Topic: topic, ID: int32(n)}, nil
}

// isID tells whether a text can be the ID of a fill, a cut or an archive.
func isID(text string) bool { return text != "" && !strings.ContainsAny(text, ":/") }

// parsePosition parses a position that somebody has written: a field is absent rather than empty.
func parsePosition(text string) (state.Position, error) {
	if text == "" {
		return state.NoPosition, errNowhere
	}
	return state.ParsePosition(text)
}

func parseTime(text string) (int64, error) {
	t, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, errNoTime
	}
	return t, nil
}

func parseAhead(text string) (a state.Ahead, err error) {
	clock, newest, _ := strings.Cut(text, ":")
	if a.Clock, err = parseTime(clock); err == nil {
		a.Newest, err = parseTime(newest)
	}
	return a, err
}

func aheadText(a state.Ahead) string { return number(a.Clock) + ":" + number(a.Newest) }

func number(n int64) string { return strconv.FormatInt(n, 10) }

// PositionField returns the field with the position of the plan or the fill that a name has.
func PositionField(p state.Partition) string { return string(AppendPositionField(nil, p)) }

// AppendPositionField appends a PositionField.
func AppendPositionField(dst []byte, p state.Partition) []byte {
	if p.Fill != "" {
		dst = append(append(append(dst, fillPrefix...), p.Fill...), ':')
	}
	if p.Archive != "" {
		dst = append(append(dst, archivePrefix...), p.Archive...)
	}
	dst = append(dst, p.Topic...)
	if p.Plan != "" {
		dst = append(append(dst, '@'), p.Plan...)
	}
	return strconv.AppendInt(append(dst, '/'), int64(p.ID), 10)
}

// LogField returns the field with the log that a tag identifies.
func LogField(tag string) string { return logPrefix + tag }

// RangeField returns the field with what a fill has to apply of a partition.
func RangeField(fill string, p state.Partition) string { return rangePrefix + fill + ":" + p.String() }

func sinceField(p state.Partition) string { return sincePrefix + p.String() }

// The fields that a store writes when it applies records, beside positions: the greatest timestamp of a record applied, and the least
// time by which that was behind the clock, both in ms.
const (
	NewestField = newestField
	LagField    = lagField
)

// fields returns all fields, as they are now.
func (r *Record) fields() map[string]string {
	fields := maps.Clone(r.others)
	for p, h := range r.held {
		fields[PositionField(p.WithPlan(h.Plan))] = h.At.String()
	}
	for p, at := range r.since {
		fields[sinceField(p)] = number(at)
	}
	for e, at := range r.ends {
		fields[e.Topic+"@"+e.Version] = number(at)
	}
	for topic, seen := range r.topics {
		fields[topicPrefix+topic] = seen.Log + ":" + strconv.Itoa(seen.Partitions)
	}
	for tag, log := range r.logs {
		fields[LogField(tag)] = log.Text()
	}
	for k, f := range r.fillings {
		if text := f.String(); text != "" {
			fields[RangeField(k.fill, k.partition)] = text
		}
		if f.at.Exists() {
			fields[PositionField(state.Partition{Topic: k.partition.Topic, ID: k.partition.ID, Fill: k.fill})] = f.at.String()
		}
	}
	for k, a := range r.archives {
		fields[archivePrefix+k.cut+":"+k.archive] = number(a.rows) + ";" + number(a.since)
	}
	for k, at := range r.rows {
		fields[PositionField(state.Partition{Fill: k.fill, Archive: k.archive})] = at.String()
	}
	if r.newest != nil {
		fields[newestField] = number(*r.newest)
	}
	if r.lag != nil {
		fields[lagField] = number(*r.lag)
	}
	if r.evicted != "" {
		fields[evictedField] = r.evicted
	}
	if r.ahead != (state.Ahead{}) {
		fields[aheadField] = aheadText(r.ahead)
	}
	return fields
}

// movingPosition returns the partition of a field with a position, which moves as records are applied.
func movingPosition(name string) (p state.Partition, ok bool) {
	under, id, isPosition := strings.Cut(name, "/")
	switch kind, rest, prefixed := strings.Cut(under, ":"); {
	case !isPosition:
		return p, false
	case !prefixed:
		topic, _, _ := strings.Cut(under, "@")
		p, err := parsePartition(topic + "/" + id)
		return p, err == nil
	case kind+":" == fillPrefix:
		_, topic, _ := strings.Cut(rest, ":")
		p, err := parsePartition(topic + "/" + id)
		return p, err == nil
	default:
		return p, false
	}
}
