package state

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
)

// Archive is a list of files with events before a cut. It never changes: further files before the same cut make another
// archive.
type Archive struct {
	ID  string `json:"-"`
	Cut Cut    `json:"cut"`
	// Since is the event time, in ms, from which the files have all events before the cut; MinTime means all events.
	Since int64 `json:"since"`
	// Stated is true if an operator stated Since. Otherwise it is the time of the earliest event in the files, of the
	// stream for which that is the latest.
	Stated bool `json:"stated,omitempty"`
	// Number orders the archives of a namespace. The last archive of a topic determines its cut.
	Number int            `json:"number"`
	Files  []ArchivedFile `json:"files"` // rows are applied in this order
}

// ArchivedFile is a file of an archive. It is identified by its content, not by its name.
type ArchivedFile struct {
	Name   string `json:"name"` // for messages
	Stream string `json:"stream"`
	Hash   string `json:"hash"` // of its content
	Rows   int64  `json:"rows"` // with or without an event before the cut
}

// Same reports whether two files have the same events.
func (f *ArchivedFile) Same(other *ArchivedFile) bool {
	return f.Stream == other.Stream && f.Hash == other.Hash
}

// NewArchive makes the archive that adds the files of a draft to its cut. It returns nil if the known archives of the
// namespace have them all. A stated Since stays, even if further files begin earlier.
func NewArchive(draft Archive, known []*Archive) *Archive {
	a := &draft
	a.Number = 1
	for _, other := range known {
		a.Number = max(a.Number, other.Number+1)
	}
	before, files := ArchivesOf(a.Cut, known), a.Files
	a.Files = nil
	for i := range files {
		if !slices.ContainsFunc(append(slices.Clone(before), a), func(a *Archive) bool { return a.has(&files[i]) }) {
			a.Files = append(a.Files, files[i])
		}
	}
	since, stated := WholeSince(a.Cut, known)
	if stated && !a.Stated {
		a.Since = since
	}
	current := CutOf(a.Cut.Topic, known)
	if len(a.Files) == 0 && a.Since >= since && (stated || !a.Stated) && current != nil && *current == a.Cut {
		return nil
	}
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	a.ID = hashed("archive 1\n"+string(text), archiveLength)
	return a
}

const archiveLength = 12

func (a *Archive) has(f *ArchivedFile) bool {
	return slices.ContainsFunc(a.Files, func(own ArchivedFile) bool { return own.Same(f) })
}

// Rows returns the number of rows of all files.
func (a *Archive) Rows() (rows int64) {
	for i := range a.Files {
		rows += a.Files[i].Rows
	}
	return rows
}

// ErrLostArchive says that shards have rows of an archive that the store no longer knows.
var ErrLostArchive = errors.New("the state has rows of files that are no longer registered, because Redis lost that")

// ArchivesOf returns the archives of a cut, ordered by number.
func ArchivesOf(cut Cut, known []*Archive) (of []*Archive) {
	for _, a := range known {
		if a.Cut == cut {
			of = append(of, a)
		}
	}
	slices.SortFunc(of, func(a, b *Archive) int { return cmp.Or(a.Number-b.Number, cmp.Compare(a.ID, b.ID)) })
	return of
}

// WholeSince returns the event time, in ms, from which the files before a cut have all events, and whether an
// operator stated it. It is MaxTime without files.
func WholeSince(cut Cut, known []*Archive) (since int64, stated bool) {
	since = MaxTime
	for _, a := range ArchivesOf(cut, known) {
		since, stated = min(since, a.Since), stated || a.Stated
	}
	return since, stated
}

// CutOf returns the cut that new generations of a topic's series get; nil if there is none.
func CutOf(topic string, known []*Archive) *Cut {
	var last *Archive
	for _, a := range known {
		if a.Cut.Topic == topic && (last == nil || cmp.Or(a.Number-last.Number, cmp.Compare(a.ID, last.ID)) > 0) {
			last = a
		}
	}
	if last == nil {
		return nil
	}
	return &last.Cut
}
