package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/cmd/weir/say"
	"github.com/weir-stream/weir/internal/spelling"
)

// errAllApplied ends a demo with a fixed number of events.
var errAllApplied = errors.New("all events are applied")

// introduce prints what runs where, first what to open.
func (d *running) introduce() {
	c := d.cfg
	fmt.Fprintf(d.screen, `Open http://%s for the page. Weir runs in this process, and nothing is kept when it ends:

  broker      %s  (topics %s; dead letters in %s)
  Redis       %s
  definitions %s

`, d.node.Addr(), c.Kafka.Brokers[0], strings.Join(d.node.Registry().Topics(), ", "), c.Kafka.DeadLetterTopic, c.Redis.Addresses[0],
		say.Summary(d.node.Registry()))
}

// watch shows the progress each second, prints what to ask once the past is applied, and ends the
// demo when all events are applied, if requested.
func (d *running) watch(ctx context.Context) error {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	start := time.Now()
	second, reported := start, d.exit
	var handled, before, sent int64 // now and a second ago
	moved := start
	for {
		select {
		case <-ctx.Done():
			d.endLine()
			return nil
		case <-poll.C:
		}
		if n := d.handled(); n != handled {
			handled, moved = n, time.Now()
		}
		if d.exit && handled >= d.past.count+d.events {
			return errAllApplied
		}
		if d.exit && time.Since(moved) > demoPatience {
			return fmt.Errorf("%d of %d events are handled, and no more for %s: %w", handled, d.past.count+d.events, demoPatience,
				errors.Join(errors.New("the processor makes no progress"), d.node.Ready(ctx)))
		}
		if !reported && sent > 0 && handled >= max(sent, d.past.count) {
			reported = true
			d.suggest(ctx, time.Since(start))
		}
		past := time.Since(second)
		if past < time.Second {
			continue
		}
		d.progress(handled, float64(handled-before)/past.Seconds())
		d.trim()
		d.expire(past)
		second, before, sent = time.Now(), handled, d.sent.Load()
	}
}

// progress shows one line, over the one before on a terminal.
func (d *running) progress(handled int64, rate float64) {
	line := fmt.Sprintf("%d events, %.0f a second, %d behind, %d dead letters", handled, rate, max(d.behind(), 0), d.node.Stats().Dead)
	if say.IsTerminal(d.screen) {
		fmt.Fprintf(d.screen, "\r\x1b[K%s", line)
	} else {
		fmt.Fprintln(d.screen, line)
	}
}

// endLine ends the line that is being overwritten.
func (d *running) endLine() {
	if say.IsTerminal(d.screen) {
		fmt.Fprintln(d.screen)
	}
}

// suggest prints what to ask.
func (d *running) suggest(ctx context.Context, took time.Duration) {
	d.endLine()
	if d.past.count > 0 {
		fmt.Fprintf(d.screen, "\n%d events of the last %s applied in %.1f s; new ones follow.\n", d.past.count, spelling.Counted(d.days, "day"), took.Seconds())
	}
	if len(d.past.frauds) > 0 {
		d.listFrauds(ctx)
	} else {
		d.ask(ctx)
	}
	fmt.Fprintf(d.screen, "  curl http://%s/v1/features    (all there is to ask for)\n\n", d.node.Addr())
}

// listFrauds lists the frauds of the past and how to ask about them, and asks about one.
func (d *running) listFrauds(ctx context.Context) {
	fmt.Fprint(d.screen, "Frauds are among them. Ask about each from another shell:\n\n")
	for _, f := range d.past.frauds {
		fmt.Fprintf(d.screen, "  %s: %s\n    weir %s\n\n", f.Name, f.Tells, strings.Join(d.query(f.Service, f.Entity), " "))
	}
	shown := d.past.frauds[len(d.past.frauds)/2]
	fmt.Fprintf(d.screen, "This is what a rule engine learns about the %s:\n\n", shown.Name)
	d.run(ctx, d.query(shown.Service, shown.Entity))
}

// ask prints questions about known entities to paste into a shell, with their current answers.
func (d *running) ask(ctx context.Context) {
	fmt.Fprint(d.screen, "\nAsk from another shell:\n\n")
	for _, f := range d.node.Registry().Features {
		if entity, ok := d.sample.entity(f); ok {
			address := fmt.Sprintf("http://%s/v1/features/%s?%s", d.node.Addr(), f.Name, asURL(entity).Encode())
			fmt.Fprintf(d.screen, "  curl '%s'\n\n%s\n", address, get(ctx, address))
			break
		}
	}
	for _, s := range d.node.Registry().Services {
		if entity, ok := d.sample.entity(s.Features...); ok {
			args := d.query(s.Name, entity)
			fmt.Fprintf(d.screen, "  weir %s\n\n", strings.Join(args, " "))
			d.run(ctx, args)
		}
	}
}

// query returns a command that asks for a service.
func (d *running) query(service string, entity map[string]string) []string {
	args := []string{"query", "--address", "http://" + d.node.Addr().String(), "--service", service}
	for _, key := range slices.Sorted(maps.Keys(entity)) {
		args = append(args, key+"="+entity[key])
	}
	return args
}

// run runs another command of weir.
func (d *running) run(ctx context.Context, args []string) {
	command := d.root()
	command.SetArgs(args)
	command.SetOut(d.screen)
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(d.screen, "weir: "+err.Error())
	}
	fmt.Fprintln(d.screen)
}

func asURL(entity map[string]string) url.Values {
	values := url.Values{}
	for key, value := range entity {
		values.Set(key, value)
	}
	return values
}

// get asks a question and returns the answer, or what is wrong.
func get(ctx context.Context, address string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}
