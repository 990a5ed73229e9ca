package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/cmd/weir/say"
)

// errAllApplied ends a demo that was asked for a number of events.
var errAllApplied = errors.New("all events are applied")

// introduce says what runs where.
func (d *running) introduce() {
	c := d.cfg
	fmt.Fprintf(d.screen, `Weir runs in this process, with nothing kept when it ends:

  broker      %s  (topics %s; dead letters in %s)
  Redis       %s
  definitions %s
  API         http://%s

`, c.Kafka.Brokers[0], strings.Join(d.node.Registry().Topics(), ", "), c.Kafka.DeadLetterTopic, c.Redis.Addresses[0],
		say.Summary(d.node.Registry()), d.node.Addr())
}

// watch shows each second how far things are, asks some questions once there
// are answers, and ends the demo when all events are applied, if it is to.
func (d *running) watch(ctx context.Context) error {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	second, asked := time.Now(), d.exit
	var handled, before, sent int64 // now and a second ago
	moved := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-poll.C:
		}
		if n := d.handled(); n != handled {
			handled, moved = n, time.Now()
		}
		if d.exit && handled >= d.events {
			return errAllApplied
		}
		if d.exit && time.Since(moved) > demoPatience {
			return fmt.Errorf("%d of %d events are handled, and no more for %s: %w", handled, d.events, demoPatience,
				errors.Join(errors.New("the processor stands still"), d.node.Ready(ctx)))
		}
		past := time.Since(second)
		if past < time.Second {
			continue
		}
		d.progress(handled, float64(handled-before)/past.Seconds())
		if !asked && sent > 0 && handled >= sent {
			asked = true
			d.ask(ctx)
		}
		d.trim()
		d.expire(past)
		second, before, sent = time.Now(), handled, d.sent.Load()
	}
}

// progress shows one line, over the one before on a terminal.
func (d *running) progress(handled int64, rate float64) {
	line := fmt.Sprintf("%d events applied, %.0f a second, %d behind", handled, rate, max(d.behind(), 0))
	if say.IsTerminal(d.screen) {
		fmt.Fprintf(d.screen, "\r\x1b[K%s", line)
	} else {
		fmt.Fprintln(d.screen, line)
	}
}

// ask shows questions to paste into a shell, with their answers of now.
func (d *running) ask(ctx context.Context) {
	fmt.Fprint(d.screen, "\n\nAsk from another shell:\n\n")
	base := "http://" + d.node.Addr().String()
	for _, f := range d.node.Registry().Features {
		if entity, ok := d.sample.entity(f); ok {
			address := base + "/v1/features/" + f.Name + "?" + entity.Encode()
			fmt.Fprintf(d.screen, "  curl '%s'\n\n%s\n", address, get(ctx, address))
			break
		}
	}
	for _, s := range d.node.Registry().Services {
		if entity, ok := d.sample.entity(s.Features...); ok {
			args := []string{"query", "--address", base, "--service", s.Name}
			for _, key := range slices.Sorted(maps.Keys(entity)) {
				args = append(args, key+"="+entity.Get(key))
			}
			fmt.Fprintf(d.screen, "  weir %s\n\n", strings.Join(args, " "))
			query := d.root()
			query.SetArgs(args)
			query.SetOut(d.screen)
			if err := query.ExecuteContext(ctx); err != nil {
				fmt.Fprintln(d.screen, "weir: "+err.Error())
			}
			fmt.Fprintln(d.screen)
		}
	}
	fmt.Fprintf(d.screen, "  curl %s/v1/features    (all there is to ask for)\n\n", base)
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
