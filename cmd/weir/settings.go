package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/cmd/weir/connect"
	redisconn "github.com/weir-stream/weir/cmd/weir/connect/redis"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/operate/lag"
	"github.com/weir-stream/weir/pipeline/scan"
)

// settings are the flags of a command that works with the settings of weir run.
type settings struct{ file string }

// addSettings adds the settings of weir run to a command and its subcommands.
func addSettings(cmd *cobra.Command) *settings {
	s := &settings{}
	cmd.PersistentFlags().StringVar(&s.file, "config", "", "file of settings (default the one in WEIR_CONFIG); see config/weir.yaml")
	config.Flags(cmd.PersistentFlags())
	return s
}

// load reads the settings.
func (s *settings) load(cmd *cobra.Command) (*config.Config, error) {
	return config.Load(s.file, cmd.Flags())
}

// noLog is the log of commands that report errors themselves.
var noLog = slog.New(slog.DiscardHandler)

// openStore opens the store of the settings' namespace for a command.
func openStore(cfg *config.Config) (connect.Store, error) {
	return connect.OpenStore(cfg, false, noLog)
}

// openRedis opens the store of the settings' namespace for a command that needs Redis itself.
func openRedis(cfg *config.Config) (*redisconn.Deployment, error) {
	if err := onRedis(cfg, "replay everything into another namespace"); err != nil {
		return nil, err
	}
	return redisconn.Open(cfg, false, noLog)
}

// adopted opens the store of the settings' namespace, and takes the number of its shards. The caller must close it.
func adopted[S connect.Store](ctx context.Context, cfg *config.Config, open func(*config.Config) (S, error)) (state S, err error) {
	if state, err = open(cfg); err != nil {
		return state, err
	}
	if err := state.Adopt(ctx); err != nil {
		return state, errors.Join(err, state.Close())
	}
	return state, nil
}

// onRedis returns an error that says what to do instead if the state is not kept in Redis, for what works on Redis itself.
func onRedis(cfg *config.Config, instead string) error {
	if cfg.Store.Type != "redis" {
		return fmt.Errorf("this works on Redis, and store.type is %s: %s", cfg.Store.Type, instead)
	}
	return nil
}

// openTopics opens the partitions of topics, from a moment on, in ms; 0 means from their start. See scan.Open.
func openTopics(ctx context.Context, cfg *config.Config, topics []string, moment int64, streams []*record.Stream) (logs []*scan.Log, close func(), err error) {
	client, err := connect.KafkaClient(cfg)
	if err != nil {
		return nil, nil, err
	}
	partitions, err := lag.Partitions(ctx, client, topics)
	if err != nil {
		return nil, nil, err
	}
	log, closeLog, err := connect.Log(cfg)
	if err != nil {
		return nil, nil, err
	}
	scanner := scan.New(log)
	close = func() { scanner.Close(); closeLog() }
	if logs, err = scan.Open(ctx, scanner, partitions, moment, streams); err != nil {
		close()
		return nil, nil, err
	}
	return logs, close, nil
}

// loadAll reads the settings and the definitions.
func (s *settings) loadAll(cmd *cobra.Command) (*config.Config, *features.Registry, error) {
	cfg, err := s.load(cmd)
	if err != nil {
		return nil, nil, err
	}
	registry, err := loadOf(cfg, s.file, cmd)
	return cfg, registry, err
}

// loadOf loads the definitions that settings name.
func loadOf(cfg *config.Config, file string, cmd *cobra.Command) (*features.Registry, error) {
	if err := config.CheckDefinitions(cfg, file, cmd.Flags()); err != nil {
		return nil, err
	}
	return definition.Load(cfg.Features...)
}

// withState calls a function with the settings, the state of their namespace, and the definitions with features that
// read the generations in use.
func withState[S connect.Store](s *settings, cmd *cobra.Command, open func(*config.Config) (S, error),
	run func(*config.Config, *features.Registry, S) error) error {
	return withGivenState(s, cmd, open, func(cfg *config.Config, registry *features.Registry, state S) error {
		history, err := state.History(cmd.Context())
		if err != nil {
			return err
		}
		return run(cfg, registry.Serving(history), state)
	})
}

// withKeptState is withState with the definitions as processors keep their state.
func withKeptState[S connect.Store](s *settings, cmd *cobra.Command, open func(*config.Config) (S, error),
	run func(*config.Config, *features.Registry, S) error) error {
	return withGivenState(s, cmd, open, func(cfg *config.Config, given *features.Registry, state S) error {
		plan, history, err := state.Bind(cmd.Context(), given.Plan())
		if err != nil {
			return err
		}
		return run(cfg, given.Keeping(plan, history), state)
	})
}

// withGivenState is withState with the definitions as given.
func withGivenState[S connect.Store](s *settings, cmd *cobra.Command, open func(*config.Config) (S, error),
	run func(*config.Config, *features.Registry, S) error) error {
	cfg, registry, err := s.loadAll(cmd)
	if err != nil {
		return err
	}
	state, err := adopted(cmd.Context(), cfg, open)
	if err != nil {
		return err
	}
	defer func() { _ = state.Close() }()
	return run(cfg, registry, state)
}
