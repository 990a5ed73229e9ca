package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/cmd/weir/connect"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/diff"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/operate/lag"
	"github.com/weir-stream/weir/pipeline/backfill"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/serve/catalogue"
	"github.com/weir-stream/weir/serve/reply"
)

// losesState is the error for a change of definitions that loses state of services.
type losesState struct{ features []string }

func (e *losesState) Error() string {
	return fmt.Sprintf("services answer with %s, which would lose state: %s", spelling.Counted(len(e.features), "feature"), strings.Join(e.features, ", "))
}

func newDiffCommand() *cobra.Command {
	var (
		out     output
		server  connection
		timeout time.Duration
		fills   bool
		memory  bool
	)
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Report what a change of definitions changes",
		Long: `Report what new definitions change: what features mean, which keep their state and
which start over, which services are affected, and what costs more or less. OLD and
NEW are files or folders, either at a Git revision, REVISION:PATH, or the URL of a
server, for the definitions that it answers from. A server that requires tokens
requires the scope author.

With --backfill it asks Kafka how many records must be read to fill the new state, and
estimates how long that takes. It reads no records. Kafka and backfill.rate are those
of --config.

With --memory it counts the entities of at most 100,000 keys, of each Redis master or
of Ignite, and estimates how much memory the change takes for that many. The store and
the namespace are those of --config.

The exit code is 2 if a feature of a service would lose its state: it starts over or
is gone. The command cannot know which features are asked for by name only.`,
		Example: `  weir diff main:config/features config/features
  weir diff https://weir.internal:8080 config/features --token-file admin.token
  weir diff https://weir.internal:8080 config/features --backfill --memory --config config/weir.yaml
  weir diff --json old/ new/`,
		Args: cobra.ExactArgs(2),
	}
	s := addSettings(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := server.load(); err != nil {
			return err
		}
		cmd.SilenceUsage = true // later errors are not about usage
		ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
		defer cancel()
		var registries [2]*features.Registry
		for i, arg := range args {
			var err error
			if registries[i], err = definitionsAt(ctx, &server, arg); err != nil {
				return err
			}
		}
		d := diff.Of(registries[0], registries[1])
		if fills || memory {
			cfg, err := s.load(cmd)
			if err != nil {
				return err
			}
			if fills {
				d.Backfill, err = estimateBackfill(ctx, cfg, registries[0], registries[1])
			}
			if err == nil && memory {
				d.Memory, err = estimateMemory(ctx, cfg, registries[0], registries[1])
			}
			if err != nil {
				return err
			}
		}
		if err := out.print(cmd, d); err != nil {
			return err
		}
		if lost := d.Loses(); len(lost) > 0 {
			return &losesState{lost}
		}
		return nil
	}
	flags := cmd.Flags()
	out.flag(cmd)
	flags.BoolVar(&fills, "backfill", false, "ask Kafka how long filling the new state takes")
	flags.BoolVar(&memory, "memory", false, "count the entities in the store, and estimate the memory that the change takes")
	server.add(flags)
	flags.DurationVar(&timeout, "timeout", 30*time.Second, "how long to wait for servers, Kafka, the store and Git")
	return cmd
}

// estimateBackfill estimates the effort of filling the state that new definitions add now.
func estimateBackfill(ctx context.Context, cfg *config.Config, before, after *features.Registry) (*diff.Backfill, error) {
	client, err := connect.KafkaClient(cfg)
	if err != nil {
		return nil, err
	}
	poller := fetch.NewPoller(fetch.PollerConfig{Transport: client.Transport, Bootstrap: client.Addr, Isolation: connect.Isolation(cfg)})
	defer poller.Close()
	fill, b := diff.Fill(before, after), &diff.Backfill{Rate: cfg.Backfill.Rate, Topics: []diff.Topic{}}
	for _, topic := range slices.Sorted(maps.Keys(fill.Columns)) {
		partitions, err := lag.Partitions(ctx, client, []string{topic})
		if errors.Is(err, kafka.UnknownTopicOrPartition) {
			b.Add(after, fill, topic, diff.Topic{Missing: true})
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("--backfill: %w", err)
		}
		e, err := backfill.EstimateFill(ctx, poller, after.FillReach(fill, topic), partitions, time.Now().UnixMilli())
		if err != nil {
			return nil, fmt.Errorf("--backfill: %w", err)
		}
		t := diff.Topic{Records: e.Records}
		if e.Lost {
			t.CompleteSince = e.Since
		}
		b.Add(after, fill, topic, t)
	}
	return b, nil
}

// countedKeys is how many keys of a server are looked at, about a second.
const countedKeys = 100_000

// estimateMemory estimates what the change costs at the current number of entities.
func estimateMemory(ctx context.Context, cfg *config.Config, before, after *features.Registry) (*diff.Memory, error) {
	held, err := adopted(ctx, cfg, openStore)
	if err != nil {
		return nil, fmt.Errorf("--memory: %w", err)
	}
	defer held.Close()
	found, err := held.CountKeys(ctx, countedKeys)
	if err != nil {
		return nil, fmt.Errorf("--memory: %w", err)
	}
	return diff.MemoryOf(before, after, held.Name(), &found), nil
}

// definitionsAt loads definitions from a server if the name is a URL, else from a path or, if there
// is none with that name and it has the form REVISION:PATH, from a revision in git.
func definitionsAt(ctx context.Context, server *connection, name string) (*features.Registry, error) {
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return definitionsOf(ctx, server, serverURL(name))
	}
	_, err := os.Stat(name)
	revision, path, ok := strings.Cut(name, ":")
	if err == nil || !ok || revision == "" {
		return definition.Load(name)
	}
	folder, err := os.MkdirTemp("", "weir-diff-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	registry, err := definition.LoadFS(&atRevision{ctx, revision, folder}, path)
	if findings, ok := errors.AsType[definition.Findings](err); ok {
		for i := range findings {
			findings[i].File = revision + ":" + filepath.ToSlash(findings[i].File)
		}
		return nil, findings
	}
	return registry, err
}

// definitionsOf loads the definitions that a server answers from.
func definitionsOf(ctx context.Context, server *connection, address string) (*features.Registry, error) {
	var served catalogue.Definitions
	err := server.call(ctx, http.MethodGet, address, "/v1/definitions", nil, &served)
	if refusal, ok := errors.AsType[*reply.Error](err); ok {
		switch refusal.Status {
		case http.StatusNotFound:
			return nil, fmt.Errorf("%s does not serve its definitions: its release is too old; compare with those that it was deployed with", address)
		case http.StatusUnauthorized:
			return nil, fmt.Errorf("%s: %w; --token-file needs a token of the scope author", address, refusal)
		}
		return nil, fmt.Errorf("%s: %w", address, refusal)
	}
	if err != nil {
		return nil, err
	}
	registry, err := definition.LoadFiles(served.Files)
	if findings, ok := errors.AsType[definition.Findings](err); ok {
		for i := range findings {
			findings[i].File = address + ": " + findings[i].File
		}
		return nil, findings
	}
	if err == nil && registry.Version() != served.Version {
		return nil, fmt.Errorf("%s answers from definitions of version %s, which mean %s to this release: use the weir of the server's release",
			address, served.Version, registry.Version())
	}
	return registry, err
}

// atRevision has the files of a revision in git, by their paths from the current folder, which may lead out of it: definitions
// name schemas in other folders. What is opened is first copied into a folder.
type atRevision struct {
	ctx      context.Context
	revision string
	folder   string
}

func (r *atRevision) Open(name string) (fs.File, error) {
	if filepath.IsAbs(name) {
		return os.Open(name) // a schema of this machine
	}
	top, err := r.git("", "rev-parse", "--show-toplevel", "--show-prefix")
	if err != nil {
		return nil, err
	}
	root, prefix, _ := strings.Cut(strings.TrimSuffix(string(top), "\n"), "\n")
	inner := path.Join(prefix, filepath.ToSlash(name))
	copied := filepath.Join(r.folder, filepath.FromSlash(inner))
	if _, err := os.Stat(copied); err != nil {
		if err := r.extract(root, inner); err != nil {
			return nil, err
		}
	}
	return os.Open(copied)
}

// git returns what a command of git prints, in a folder.
func (r *atRevision) git(folder string, args ...string) ([]byte, error) {
	git := exec.CommandContext(r.ctx, "git", args...)
	git.Dir = folder
	out, err := git.Output()
	if said, ok := errors.AsType[*exec.ExitError](err); ok && len(said.Stderr) > 0 {
		return nil, errors.New(strings.TrimSpace(string(said.Stderr)))
	}
	return out, err
}

// extract copies a file or a folder of the repository.
func (r *atRevision) extract(root, name string) error {
	archive, err := r.git(root, "archive", "--format=tar", r.revision, "--", name)
	if err != nil {
		return err
	}
	files := tar.NewReader(bytes.NewReader(archive))
	for {
		header, err := files.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg || !filepath.IsLocal(header.Name) {
			continue
		}
		to := filepath.Join(r.folder, header.Name)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		text, err := io.ReadAll(files)
		if err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return err
		}
	}
}
