package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/cmd/weir/connect"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/operate/lag"
	"github.com/weir-stream/weir/pipeline/backfill"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
)

// fromFiles fills features from files.
type fromFiles struct {
	inputs     []string
	until      string
	offsets    []string // fields
	since      string
	recordTime string
	setAside   bool

	cfg      *config.Config
	registry *features.Registry // as given
	store    connect.Store
	rate     float64
	out      io.Writer
	screen   *fillScreen
}

// beginning is the value of --since for files with all events that ever were.
const beginning = "beginning"

func (f *fromFiles) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.inputs, "input", nil, "fill from files of events: [STREAM=]FILE, a folder or a pattern, also s3://BUCKET/KEY; may be given several times")
	flags.StringVar(&f.until, "until", "", "with --input: events before this moment come from the files, all others from the log; RFC 3339 or milliseconds since 1970")
	flags.StringSliceVar(&f.offsets, "offsets", nil, "with --input: the fields that say which record of the log a row was: PARTITION,OFFSET or TOPIC,PARTITION,OFFSET; all rows come from the files, and all later records from the log")
	flags.StringVar(&f.since, "since", "", "with --input: the files have every event since this moment, whatever the present state claims; beginning: since there were events (default their earliest event, of the stream that begins last, unless the present state reaches back further)")
	flags.StringVar(&f.recordTime, "record-time", "", "with --input: the field that says when a record arrived (default the timestamp of its envelope, or else the event's own time)")
	flags.BoolVar(&f.setAside, "set-aside", false, "with --input: leave out events that cannot be used, as processors do")
	cmd.MarkFlagsMutuallyExclusive("until", "offsets")
	for _, flag := range []string{"since", "record-time", "set-aside"} {
		cmd.MarkFlagsMutuallyExclusive("of", flag)
	}
	cmd.MarkFlagsMutuallyExclusive("of", "input")
}

// needless returns an error if flags that belong to --input were given without it.
func (f *fromFiles) needless() error {
	if f.until+f.since+f.recordTime != "" || len(f.offsets) > 0 || f.setAside {
		return errors.New("--until, --offsets, --since, --record-time and --set-aside apply to files: name the files with --input")
	}
	return nil
}

// divided returns the moment of --until, in ms, or the fields of --offsets. Without these flags they are state.MaxTime
// and nil.
func (f *fromFiles) divided(ctx context.Context) (until int64, coordinates *backfill.Coordinates, err error) {
	switch {
	case f.until != "":
		if until, err = momentOf("--until", f.until); err == nil {
			err = f.notAhead(ctx, until)
		}
		return until, nil, err
	case len(f.offsets) == 0:
		return 0, nil, errors.New("--input needs --until or --offsets: what counts from the files, and what from the log")
	case len(f.offsets) > 3 || len(f.offsets) < 2 || slices.Contains(f.offsets, ""):
		return 0, nil, fmt.Errorf("--offsets %s: name two or three fields: PARTITION,OFFSET or TOPIC,PARTITION,OFFSET", strings.Join(f.offsets, ","))
	}
	last := len(f.offsets) - 1
	coordinates = &backfill.Coordinates{Partition: f.offsets[last-1], Offset: f.offsets[last]}
	if last == 2 {
		coordinates.Topic = f.offsets[0]
	}
	return state.MaxTime, coordinates, nil
}

func (f *fromFiles) run(ctx context.Context) error {
	until, coordinates, err := f.divided(ctx)
	if err != nil {
		return err
	}
	since, err := f.stated(until)
	if err != nil {
		return err
	}
	inputs, err := f.byTopic(ctx, coordinates)
	if err != nil {
		return fmt.Errorf("--input: %w", err)
	}
	var all []*backfill.FromFiles
	for _, topic := range f.registry.Topics() {
		if len(inputs[topic]) == 0 {
			continue
		}
		b, err := f.read(ctx, state.Cut{Topic: topic, Until: until}, since, inputs[topic])
		if err != nil {
			return err
		}
		all = append(all, b)
	}
	for _, b := range all {
		err := b.Register(ctx)
		if later, is := errors.AsType[*backfill.LaterSinceError](err); is {
			err = fmt.Errorf("--since %s: the files of %s were registered as having all events since %s: choose another cut, which fills everything again",
				f.since, b.Cut.Topic, whenever(later.Registered))
		}
		if err != nil {
			return err
		}
	}
	return f.fill(ctx, all)
}

// stated returns the moment of --since, in ms; nil without the flag.
func (f *fromFiles) stated(until int64) (*int64, error) {
	since := state.MinTime
	switch f.since {
	case "":
		return nil, nil
	case beginning:
		return &since, nil
	}
	since, err := momentOf("--since", f.since)
	if err == nil && since >= until {
		err = fmt.Errorf("--since %s is not before --until %s", f.since, f.until)
	}
	return &since, err
}

// fill fills from files and log until everything that processors keep over the cuts is complete. This may change
// meanwhile: definitions change, windows pass cuts, and a store may go back in time.
func (f *fromFiles) fill(ctx context.Context, all []*backfill.FromFiles) error {
	for {
		var reached []*backfill.FromFiles
		for _, b := range all {
			switch err := b.Run(ctx); {
			case errors.Is(err, backfill.ErrNothingReachesBack):
				f.screen.say(b.Cut.Topic, fmt.Sprintf("%s: %v", b.Cut.Topic, err))
			case errors.Is(err, state.ErrLostArchive):
				return fmt.Errorf("%w: choose another cut, which fills everything again", err)
			case err != nil:
				return err
			default:
				reached = append(reached, b)
			}
		}
		if len(reached) == 0 {
			return backfill.ErrNothingReachesBack
		}
		if whole, err := f.fromLog(ctx, reached); whole || err != nil {
			return err
		}
		if !retry.Wait(ctx, bindInterval) {
			return ctx.Err()
		}
	}
}

// bindInterval is how often to check whether processors keep something else now.
const bindInterval = 2 * time.Second

// momentOf parses a moment, in ms. A lesser number than leastMoment would cut, or claim to be complete, in 1970.
func momentOf(flag, text string) (int64, error) {
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms >= leastMoment {
		return ms, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is neither a moment such as 2026-01-31T23:59:59Z nor milliseconds since 1970", flag, text)
	}
	return t.UnixMilli(), nil
}

// byTopic finds the files of each topic. There must be some of each of its streams, because the cut
// holds for all.
func (f *fromFiles) byTopic(ctx context.Context, coordinates *backfill.Coordinates) (map[string][]backfill.Input, error) {
	inputs, given := map[string][]backfill.Input{}, map[*record.Stream]bool{}
	for _, spec := range f.inputs {
		name, pattern, named := splitInput(spec)
		if !named {
			if len(f.registry.Streams) != 1 {
				return nil, fmt.Errorf("%s: name the stream of its events: STREAM=%s", spec, spec)
			}
			name = f.registry.Streams[0].Name
		}
		stream, err := streamOf(f.registry, name, spec)
		if err != nil {
			return nil, err
		}
		if len(stream.Others) > 0 {
			return nil, fmt.Errorf("%s: stream %s reads several topics (%s), and a cut divides the events of one: files fill streams of one topic", spec, stream.Name, strings.Join(stream.Topics(), ", "))
		}
		files, err := filesOf(ctx, pattern, f.out)
		if err != nil {
			return nil, err
		}
		given[stream] = true
		for _, file := range files {
			inputs[stream.Topic] = append(inputs[stream.Topic], backfill.Input{Name: file, Stream: stream, RecordTime: f.recordTime, Coordinates: coordinates})
		}
	}
	for _, s := range f.registry.Streams {
		if len(inputs[s.Topic]) > 0 && !given[s] && len(s.Others) == 0 { // one of several topics counts from the log alone
			return nil, fmt.Errorf("stream %s reads topic %s too, and from now on the topic's events before the cut come from files only: give files of that stream too", s.Name, s.Topic)
		}
	}
	return inputs, nil
}

// notAhead returns an error if the cut is later than what is applied.
func (f *fromFiles) notAhead(ctx context.Context, until int64) error {
	newest, err := f.store.Clock(ctx)
	if err == nil && until > newest {
		err = fmt.Errorf("--until %s is later than the newest record applied, of %s: events that are still to come would not count", f.until, spelling.Moment(newest))
	}
	return err
}

// whenever describes a moment since which something is complete.
func whenever(ms int64) string {
	if ms == state.MinTime {
		return "the beginning"
	}
	return spelling.Moment(ms)
}

// read reads all files of a topic, and checks that its log continues where they end.
func (f *fromFiles) read(ctx context.Context, cut state.Cut, since *int64, inputs []backfill.Input) (*backfill.FromFiles, error) {
	before, beforeCut := &cut, "before --until"
	if len(f.offsets) > 0 {
		before, beforeCut = nil, "before the cut"
	} else if err := f.meets(ctx, &cut, nil); err != nil {
		return nil, err
	}
	b := &backfill.FromFiles{
		Store: f.store, Definitions: f.registry, Cut: cut, Since: since, Rate: f.rate,
		Trouble: f.reportTrouble,
		Waiting: func(of []string) {
			f.screen.say("waiting", fmt.Sprintf("waiting until processors take the files into account for %s: a minute at most, if they have these definitions", strings.Join(of, ", ")))
		},
		Progress: func(fill *state.Fill, of []string, filled, all int64) {
			f.screen.say(fill.ID, fmt.Sprintf("%s: %d%% of %d rows", strings.Join(of, ", "), 100*filled/max(all, 1), all))
		},
	}
	unusable, events, first := int64(0), int64(0), error(nil)
	for _, in := range inputs {
		file, err := backfill.ReadFile(ctx, in, f.registry, before)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(f.out, "%s: %s of %s, %d %s\n", file.Name, spelling.Counted(int(file.Events), "event"), file.Stream, file.Before, beforeCut)
		b.Files = append(b.Files, file)
		events += file.Events
		unusable, first = unusable+file.Unusable, cmp.Or(first, file.Reason)
	}
	if unusable > 0 {
		found := fmt.Sprintf("%d of %s of %s cannot be used; the first: %v", unusable, spelling.Counted(int(events), "event"), cut.Topic, first)
		if !f.setAside {
			return nil, errors.New(found + "; --set-aside leaves them out")
		}
		fmt.Fprintln(f.out, found)
	}
	if before != nil {
		return b, nil
	}
	for _, gap := range backfill.SpansOf(b.Files).Gaps() {
		fmt.Fprintf(f.out, "%s, %s; transactions and compaction leave such gaps, and so do lost files\n", cut.Topic, gap)
	}
	return b, f.meets(ctx, &b.Cut, b.Files)
}

// meets returns an error if the log of a cut's topic begins after the cut. If there are files, the cut becomes a cut by
// their offsets.
func (f *fromFiles) meets(ctx context.Context, cut *state.Cut, files []*backfill.File) (err error) {
	client, err := connect.KafkaClient(f.cfg)
	if err != nil {
		return err
	}
	partitions, err := lag.Partitions(ctx, client, []string{cut.Topic})
	if err != nil {
		return err
	}
	poller := fetch.NewPoller(fetch.PollerConfig{Transport: client.Transport, Bootstrap: client.Addr, Isolation: connect.Isolation(f.cfg), Logger: slog.New(slog.DiscardHandler)})
	defer poller.Close()
	if files != nil {
		if *cut, err = backfill.CutByOffsets(ctx, poller, cut.Topic, files, partitions); err != nil {
			err = fmt.Errorf("--offsets: %w", err)
		}
		return err
	}
	since, later, err := backfill.BeginsAfter(ctx, poller, cut, partitions)
	if err == nil && later {
		err = fmt.Errorf("--until %s: the log of %s has all events only since %s, so those between would be missing: a later --until, with files up to it, leaves no gap",
			f.until, cut.Topic, spelling.Moment(since))
	}
	return err
}

// fromLog fills the series over the cuts from the log, if processors do not, and reports whether everything is then
// complete, including what files fill.
func (f *fromFiles) fromLog(ctx context.Context, all []*backfill.FromFiles) (whole bool, err error) {
	bound, err := f.bind(ctx, all)
	if err != nil || len(bound.pending) > 0 {
		return false, f.unlessAway(ctx, err)
	}
	err = runBackfill(ctx, f.cfg, bound.Binding, f.store, f.rate, bound.has, f.screen)
	abandoned, is := errors.AsType[*backfill.AbandonedError](err)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case is:
		f.screen.say("waiting", fmt.Sprintf("waiting until processors have these definitions: %v", abandoned))
		return false, nil
	case err != nil && !errors.Is(err, backfill.ErrRebound) && !errors.Is(err, errNotFilled) && !errors.Is(err, errNothingToFill):
		return false, err
	}
	if bound, err = f.bind(ctx, all); err != nil || !bound.whole() {
		return false, f.unlessAway(ctx, err)
	}
	f.report(bound)
	return true, nil
}

// unlessAway returns an error, except that it reports and waits for an unavailable store.
func (f *fromFiles) unlessAway(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil {
		f.reportTrouble(err)
	}
	return ctx.Err()
}

func (f *fromFiles) reportTrouble(err error) { f.screen.say("trouble", "trying again: "+err.Error()) }

// report says since when features are complete, and which continue without the files.
func (f *fromFiles) report(b *boundFills) {
	names := map[bool]map[int64][]string{true: {}, false: {}} // by whether they have the files, and since when they are complete
	filled := map[string]bool{}
	for _, fill := range b.fills {
		for _, name := range b.Registry.FilledBy(fill) {
			filled[name] = true
		}
	}
	for _, feature := range b.Registry.Features {
		if filled[feature.Name] {
			with := slices.ContainsFunc(feature.Retained(), func(r state.Retained) bool { return r.Cut != nil })
			since := b.History.CompleteSince(feature.Retained())
			names[with][since] = append(names[with][since], feature.Name)
		}
	}
	for _, since := range slices.Sorted(maps.Keys(names[true])) {
		fmt.Fprintf(f.out, "%s: complete since %s\n", strings.Join(names[true][since], ", "), whenever(since))
	}
	for _, since := range slices.Sorted(maps.Keys(names[false])) {
		fmt.Fprintf(f.out, "%s: complete since %s, without the files: they reach back less far than the present state, so features keep that. "+
			"If there were events before the topic's first record, state with --since since when the files have every event, or --since %s\n",
			strings.Join(names[false][since], ", "), whenever(since), beginning)
	}
}
