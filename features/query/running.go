package query

import (
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Running answers exact features of entities whose logs grow while the moment of the question advances, as in a replay
// of history: their windows move on and are not folded again. The answers always equal those of Reading on the same
// logs; moments that go back only take longer.
//
//	i, ok := r.Take(feature) // for each feature
//	for i, log := range r.Logs { // at each moment, of the entities asked about
//		err := r.Move(i, &windows, log, at)
//	}
//	answer := r.Answer(i)
type Running struct {
	// Logs are the logs that the features depend on.
	Logs []RunningLog

	taken   []*features.Feature
	answers []Answer        // by index, see Take
	whole   []*Completeness // by index
	parts   []runningParts  // by index
	inHand  *record.Event   // see SetInHand
	at      int64
	sample  aggregate.Sample
}

// RunningLog holds the windows that are answered from one log.
type RunningLog struct {
	Series  *state.Series
	windows []runningWindow
	values  int     // features
	empty   Windows // over the log of an entity that has none
}

// runningWindow holds the features over one window.
type runningWindow struct {
	window.Window
	features []runningFeature
	value    int // the index of the first feature's value in Windows.values
}

type runningFeature struct {
	*features.Feature
	// columns are the columns of the feature and of all after it that share its samples.
	columns  features.LogColumns
	shares   bool // the samples of the feature before it
	function aggregate.Incremental
	exact    bool        // as far as no cap is reached
	neutral  value.Value // if the window is empty
	index    int
}

// runningParts are what a feature is computed from; those over a stream have none.
type runningParts struct {
	slots []int // indices in answers
	*features.Feature
	*features.Derived
	*derivation
}

// Windows are the positions of a RunningLog's windows in the log of one entity. The zero Windows have not begun. They
// are small and contiguous, because cache misses slow a replay most.
type Windows struct {
	windows []windowEdges
	values  []aggregate.Running // of the features of each window, one window after another
}

// windowEdges is the position of a window in a log.
type windowEdges struct {
	from, to    int64 // positions of its first record, and of the one after its last
	oldest      int64 // the time of its first record, in milliseconds, if there is one
	first, last int64 // its edges, in milliseconds
}

// Take reserves a slot for the answers of a feature. It returns false if only Reading can answer it.
func (r *Running) Take(f *features.Feature) (index int, ok bool) {
	if !runs(f) {
		return 0, false
	}
	return r.take(f), true
}

// runs reports whether the value of a feature can be maintained while its window moves.
func runs(f *features.Feature) bool {
	switch basis := f.Basis.(type) {
	case *features.Derived:
		return !slices.ContainsFunc(basis.Of, func(part *features.Feature) bool { return !runs(part) })
	case *features.MultiHop, *features.OfTable:
		return false
	default:
		_, incremental := f.Function.(aggregate.Incremental)
		_, opens := f.Window.Type.(window.Opened)
		return incremental && f.Window.Exact && !opens && f.Window.Last == 0 && f.Window.Exclude == window.ExcludeNothing &&
			f.Per == "" && f.Call.Members == nil && f.Compared == nil
	}
}

// take finds or reserves the slot of a feature, which may also be part of others.
func (r *Running) take(f *features.Feature) int {
	if index := slices.Index(r.taken, f); index >= 0 {
		return index
	}
	index := len(r.answers)
	r.taken = append(r.taken, f)
	r.answers, r.whole = append(r.answers, Answer{CompleteSince: state.MinTime, since: state.MinTime}), append(r.whole, &everything)
	r.parts = append(r.parts, runningParts{})
	if of, ok := f.Basis.(*features.Derived); ok {
		parts := runningParts{Feature: f, Derived: of, derivation: newDerivation(of.Expr.Clone(), len(of.Of))}
		for _, part := range of.Of {
			parts.slots = append(parts.slots, r.take(part))
		}
		r.parts[index] = parts
		return index
	}
	log, spec := r.log(f.Series[0]), f.Function.Spec()
	r.answers[index].Shape, r.answers[index].StandardError = spec.Shape, spec.StandardError
	at := slices.IndexFunc(log.windows, func(w runningWindow) bool { return w.Window == f.Window })
	if at < 0 {
		at = len(log.windows)
		log.windows = append(log.windows, runningWindow{Window: f.Window, value: log.values})
	}
	log.values++
	w := &log.windows[at]
	w.add(runningFeature{Feature: f, columns: f.Columns, function: f.Function.(aggregate.Incremental), exact: spec.Exact, neutral: spec.Neutral, index: index})
	for i := at + 1; i < len(log.windows); i++ {
		log.windows[i].value++
	}
	return index
}

// add adds a feature, which shares the samples of the last one if it can.
func (w *runningWindow) add(f runningFeature) {
	for i := len(w.features) - 1; i >= 0; i-- {
		if last := &w.features[i]; !last.shares {
			f.shares = last.columns.With(&f.columns)
			break
		}
	}
	w.features = append(w.features, f)
}

// Complete sets how complete the state of the feature in a slot is, before the first Move. Without a call it lacks
// nothing.
func (r *Running) Complete(index int, c *Completeness) {
	r.whole[index] = c
	for i, part := range r.parts[index].slots {
		r.Complete(part, c.part(i))
	}
}

func (r *Running) log(s *state.Series) *RunningLog {
	at := slices.IndexFunc(r.Logs, func(l RunningLog) bool { return l.Series == s })
	if at < 0 {
		at = len(r.Logs)
		r.Logs = append(r.Logs, RunningLog{Series: s})
	}
	return &r.Logs[at]
}

// SetInHand sets the event being scored for the following answers; see Reading.SetInHand.
func (r *Running) SetInHand(e *record.Event) { r.inHand = e }

// Move moves the windows over a log of an entity to a moment, in milliseconds. Without windows the log is empty. It fails
// if the log is damaged.
func (r *Running) Move(log int, windows *Windows, held state.GrowingLog, at int64) error {
	l := &r.Logs[log]
	if windows == nil {
		windows = &l.empty
	}
	begun := windows.windows != nil
	if !begun {
		windows.windows, windows.values = make([]windowEdges, len(l.windows)), make([]aggregate.Running, l.values)
	}
	r.at = at
	m, cut := moving{held: held}, held.Cut != state.MinTime
	for i := range l.windows {
		w, p := &l.windows[i], &windows.windows[i]
		m.w, m.windowEdges, m.values = w, p, windows.values[w.value:]
		first, last := w.Edges(at)
		if !begun || p.from < held.Start || first < p.first || last < p.last {
			m.restart()
		}
		p.first, p.last = first, last
		if err := r.move(&m); err != nil {
			return err
		}
		for j := range w.features {
			f := &w.features[j]
			a := &r.answers[f.index]
			// The rest of an answer never changes: setting it again would cost more than moving the window.
			f.set(a, m.values[j], cut && held.Cut >= m.first)
			a.From, a.To, a.coveredSince = m.first, m.last, m.first
			if whole := r.whole[f.index]; whole != &everything {
				a.CompleteAt, a.Filling, a.Filled = 0, false, 0
				a.complete(f.Feature, whole)
			}
		}
	}
	return nil
}

// set makes an answer of a value; capped is whether the log lacks events of its window.
func (f *runningFeature) set(a *Answer, of aggregate.Running, capped bool) {
	found, reached := of.Result(&a.Value)
	a.Capped = capped || reached
	a.Exact, a.Status = f.exact && !a.Capped, Present
	switch {
	case found:
		if a.Value.IsNull() {
			a.Status = NullValue
		}
	case a.Capped:
		a.withhold()
	default:
		a.Value, a.Status = f.neutral, NotFound
	}
}

// moving is a window over the log of an entity while it moves.
type moving struct {
	w *runningWindow
	*windowEdges
	values []aggregate.Running
	held   state.GrowingLog
}

// restart moves the window before the first record of the log.
func (m *moving) restart() {
	m.from, m.to = m.held.Start, m.held.Start
	for i := range m.w.features {
		f := &m.w.features[i]
		m.values[i] = f.function.Running(f.Call)
	}
}

// move adds the records that entered a window and removes those that left it.
func (r *Running) move(m *moving) error {
	for {
		record, size, err := m.record(m.to)
		if err != nil {
			return err
		}
		if size == 0 || record.Time > m.last {
			break
		}
		if m.from == m.to {
			m.oldest = record.Time
		}
		m.to += int64(size)
		if record.Time < m.first && m.from+int64(size) == m.to {
			m.from = m.to // it left the window before it entered
			continue
		}
		if err := r.each(m, &record, true); err != nil {
			return err
		}
	}
	for m.from < m.to && m.oldest < m.first {
		record, size, err := m.record(m.from)
		if err != nil {
			return err
		}
		if err := r.each(m, &record, false); err != nil {
			return err
		}
		if m.from += int64(size); m.from < m.to {
			if record, _, err = m.record(m.from); err != nil {
				return err
			}
			m.oldest = record.Time
		}
	}
	return nil
}

// record reads the record at a position; see state.Log.Record.
func (m *moving) record(position int64) (r state.LogRecord, size int, err error) {
	return m.held.Record(int(position - m.held.Start))
}

// each adds a record to the value of each feature that takes it, or removes it.
func (r *Running) each(m *moving, record *state.LogRecord, enters bool) error {
	takes := false
	for i := range m.w.features {
		if f := &m.w.features[i]; !f.shares {
			var err error
			if takes, err = sampleOf(&r.sample, &f.columns, record); err != nil {
				return err
			}
		}
		switch {
		case !takes:
		case enters:
			m.values[i].Add(&r.sample)
		default:
			m.values[i].Remove(&r.sample)
		}
	}
	return nil
}

// Answer returns the answer in a slot, for the moments and entities of the last Move. It is valid until the next Move.
func (r *Running) Answer(index int) *Answer {
	a, d := &r.answers[index], &r.parts[index]
	if len(d.slots) == 0 {
		return a
	}
	from, to := int64(state.MaxTime), int64(state.MinTime)
	for _, part := range d.slots {
		p := r.Answer(part)
		from, to = min(from, p.From), max(to, p.To)
	}
	d.begin(a, from, to)
	for i, part := range d.slots {
		d.take(a, i, &r.answers[part])
	}
	d.end(a, d.Feature, d.Derived, r.inHand, r.at, r.at)
	return a
}
