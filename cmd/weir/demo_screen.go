package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/generate"
)

// errAllApplied ends a demo that was asked for a number of events.
var errAllApplied = errors.New("all events are applied")

// introduce says what runs where.
func (d *demo) introduce() {
	c := d.node.cfg
	fmt.Fprintf(d.screen, `Weir runs in this process, with nothing kept when it ends:

  broker      %s  (topics %s; dead letters in %s)
  Redis       %s
  definitions %s
  API         http://%s

`, c.Kafka.Brokers[0], strings.Join(d.node.registry.Topics(), ", "), c.Kafka.DeadLetterTopic, c.Redis.Addresses[0],
		summary(d.node.registry), d.node.api.Addr())
}

// watch shows each second how far things are, asks some questions once there
// are answers, and ends the demo when all events are applied, if it is to.
func (d *demo) watch(ctx context.Context) error {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	second, before, asked := time.Now(), int64(0), d.exit
	handled, moved := int64(0), time.Now()
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
				errors.Join(errors.New("the processor stands still"), d.node.processor.Ready(ctx)))
		}
		if past := time.Since(second); past >= time.Second {
			d.progress(handled, float64(handled-before)/past.Seconds())
			second, before = time.Now(), handled
			d.trim()
			if !asked && handled > 0 {
				asked = true
				d.ask(ctx)
			}
		}
	}
}

// progress shows one line, over the one before on a terminal.
func (d *demo) progress(handled int64, rate float64) {
	line := fmt.Sprintf("%d events applied, %.0f a second, %d behind", handled, rate, max(d.behind(), 0))
	if isTerminal(d.screen) {
		fmt.Fprintf(d.screen, "\r\x1b[K%s", line)
	} else {
		fmt.Fprintln(d.screen, line)
	}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// ask shows questions to paste into a shell, with their answers of now.
func (d *demo) ask(ctx context.Context) {
	entity := d.sample.take()
	if entity == nil {
		return
	}
	base := "http://" + d.node.api.Addr().String()
	fmt.Fprint(d.screen, "\n\nAsk from another shell:\n\n")
	for _, f := range d.node.registry.Features {
		if query, ok := keysOf(f, entity); ok {
			address := base + "/v1/features/" + f.Name + "?" + query.Encode()
			fmt.Fprintf(d.screen, "  curl '%s'\n%s\n", address, get(ctx, address))
			break
		}
	}
	for _, s := range d.node.registry.Services {
		args := []string{"query", "--address", base, "--service", s.Name}
		keys := url.Values{}
		for _, f := range s.Features {
			query, ok := keysOf(f, entity)
			if !ok {
				keys = nil
				break
			}
			for key := range query {
				keys.Set(key, query.Get(key))
			}
		}
		if keys == nil {
			continue
		}
		for _, key := range sortedKeys(keys) {
			args = append(args, key+"="+keys.Get(key))
		}
		fmt.Fprintf(d.screen, "  weir %s\n%s\n", strings.Join(args, " "), weir(ctx, args))
		break
	}
	fmt.Fprintf(d.screen, "  curl %s/v1/features    # all there is to ask for\n\n", base)
}
