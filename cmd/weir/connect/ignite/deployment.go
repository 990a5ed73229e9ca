// Package igniteconn opens the Ignite that the settings describe: its client, the store on it, and what a process asks of both.
package igniteconn

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/reworded"
	"github.com/weir-stream/weir/operate/doctor"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/ignite"
	"github.com/weir-stream/weir/store/ignite/thin"
)

// Deployment is the store of the settings' namespace with its connections.
type Deployment struct {
	*ignite.Store
	client *thin.Client
	log    *slog.Logger
}

// Open makes the store. It makes no requests yet.
func Open(cfg *config.Config, log *slog.Logger) (*Deployment, error) {
	encryption, err := cfg.IgniteTLS()
	if err != nil {
		return nil, err
	}
	key, err := cfg.EntityKey()
	if err != nil {
		return nil, err
	}
	sealKey, err := cfg.SealKey()
	if err != nil {
		return nil, err
	}
	i := &cfg.Ignite
	client := thin.New(thin.Config{
		Addresses: i.Addresses,
		Login:     thin.Login{User: i.Username, Password: string(i.Password), TLS: encryption, Timeout: i.DialTimeout},
		Request:   i.RequestTimeout,
	})
	s := ignite.New(ignite.Config{
		Client: client, Namespace: cfg.Namespace, Shards: cfg.Shards, Backups: i.Backups, Region: i.DataRegion,
		HashKey: key, SealKey: sealKey, Slack: cfg.Store.ExpirySlack, Mutations: cfg.Store.CallMutations,
	})
	return &Deployment{s, client, log}, nil
}

// Name is how messages call the store.
func (d *Deployment) Name() string { return "Ignite" }

// Close closes the connections.
func (d *Deployment) Close() error { return d.client.Close() }

// CheckEviction returns nil: a transactional cache evicts nothing.
func (d *Deployment) CheckEviction(context.Context) error { return nil }

// FromReplicas returns false: all copies have what was confirmed, so questions ask whichever node has the key.
func (d *Deployment) FromReplicas() bool { return false }

// AwaitReplicas returns at once: a write is confirmed when all copies have it.
func (d *Deployment) AwaitReplicas(context.Context, time.Duration) ([]store.Copies, error) {
	return nil, nil
}

// Watch logs nodes that no longer answer, or answer again, and checks that the namespace is still there with all shards, until the
// context ends.
func (d *Deployment) Watch(ctx context.Context) {
	const every = time.Second
	known := map[string]bool{}
	due := time.NewTicker(every)
	defer due.Stop()
	for {
		select {
		case <-due.C:
		case <-ctx.Done():
			return
		}
		d.client.Try(ctx)
		_ = d.CheckLayout(ctx) // Ready reports its error
		_, _ = d.Clock(ctx)    // reads of all shards, so that who writes begins again with what is lost, without events too
		for _, n := range d.client.Nodes() {
			switch {
			case n.Err != nil && !known[n.Address]:
				d.log.Error("an Ignite node does not answer; it is asked again in the background", "address", n.Address, "error", reworded.Connection(n.Err))
			case n.Err == nil && known[n.Address]:
				d.log.Info("an Ignite node answers again", "address", n.Address)
			}
			known[n.Address] = n.Err != nil
		}
	}
}

var nodesUnavailable = prometheus.NewDesc("weir_ignite_nodes_unavailable", "Addresses of Ignite nodes that do not answer this process.", nil, nil)

// Describe sends the descriptions of the metrics of the connections.
func (d *Deployment) Describe(to chan<- *prometheus.Desc) { to <- nodesUnavailable }

// Collect sends the current values.
func (d *Deployment) Collect(to chan<- prometheus.Metric) {
	away := 0
	for _, n := range d.client.Nodes() {
		if n.Err != nil {
			away++
		}
	}
	to <- prometheus.MustNewConstMetric(nodesUnavailable, prometheus.GaugeValue, float64(away))
}

// Check checks the cluster and the namespace.
func Check(ctx context.Context, cfg *config.Config) (f doctor.Findings) {
	add := func(verdict doctor.Verdict, subject, found string) {
		f = append(f, doctor.Finding{Verdict: verdict, Subject: subject, Found: found})
	}
	d, err := Open(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		add(doctor.Fail, "ignite", err.Error())
		return f
	}
	defer d.Close()
	d.client.Try(ctx)
	answers := false
	for _, n := range d.client.Nodes() {
		if n.Err != nil {
			add(doctor.Fail, "ignite "+n.Address, reworded.Connection(n.Err).Error())
			continue
		}
		add(doctor.OK, "ignite "+n.Address, "answers")
		answers = true
	}
	if !answers {
		return f
	}
	if _, _, err := d.client.Clock(ctx); err != nil {
		add(doctor.Fail, "ignite", reworded.Connection(err).Error())
		return f
	}
	if copies, err := d.client.Copies(ctx, "MOVING"); err == nil && copies > 0 { // a node that has just started may not know
		add(doctor.Warn, "ignite", fmt.Sprintf("copies of partitions that are not complete yet: %d; stop no node until they are", copies))
	}
	if copies, err := d.client.Copies(ctx, "LOST"); err == nil && copies > 0 {
		add(doctor.Fail, "ignite", fmt.Sprintf("copies of partitions of which none is complete any more: %d; a processor begins again with those "+
			"in memory; of those on disk, start all nodes, and then reset the lost partitions with control.sh", copies))
	}
	fits, err := doctor.Adopt(ctx, d)
	if err != nil {
		add(doctor.Fail, "layout", err.Error())
		return f
	}
	add(doctor.OK, "layout", fits)
	switch backups, known, err := d.Backups(ctx); {
	case err != nil:
		add(doctor.Fail, "backups", err.Error())
	case known && backups == 0:
		add(doctor.Warn, "backups", "there are none: all state is read again from the log if a node dies")
	case known:
		add(doctor.OK, "backups", fmt.Sprintf("%d of each value", backups))
	}
	return f
}
