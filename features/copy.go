package features

import (
	"errors"
	"slices"

	"github.com/weir-stream/weir/features/record"
)

// readCopy finds where a record counts, for takes. A foreign one counts in another namespace only: this one has read the
// original, and has a dead letter of its own if it could not use it.
func (m *Mapper) readCopy(rec *record.Record) (foreign bool, err error) {
	if m.copy = nil; m.Namespace != "" {
		var forged bool
		if m.copy, forged = record.CopyOf(rec, m.Seal); forged {
			m.Forged++
		}
	}
	if m.copy == nil || m.copy.Namespace != m.Namespace {
		return m.copy != nil, nil
	}
	first, err := m.isFirst(rec, m.copy)
	if first {
		m.copy = nil
	}
	return false, err
}

// counts reports whether the record counts in a series.
func (m *Mapper) counts(series string) bool { return m.copy == nil || m.copy.Has(series) }

// isFirst reports whether a copy, if it can be used, is the first record of its event that can be. Whether an event is
// from the future depends on the timestamp of its record, which a replay may change: then not even a fill that reads the
// original can count it.
func (m *Mapper) isFirst(rec *record.Record, c *record.Copy) (bool, error) {
	if slices.Contains(c.Timestamps, rec.Timestamp) {
		return false, nil
	}
	original := *rec
	for _, original.Timestamp = range c.Timestamps {
		events, err := m.Decode(&original)
		for i := 0; i < len(events) && err == nil; i++ {
			err = m.mappings[events[i].Stream].filter(&events[i])
		}
		if _, poison := errors.AsType[*record.Poison](err); !poison {
			return false, err
		}
	}
	return true, nil
}
