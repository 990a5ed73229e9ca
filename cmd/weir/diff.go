package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/cmd/weir/say"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/diff"
)

// losesState says that a change of definitions loses state of services.
type losesState struct{ features []string }

func (e *losesState) Error() string {
	return fmt.Sprintf("services answer with %s, which would lose state: %s", say.Number(len(e.features), "feature"), strings.Join(e.features, ", "))
}

func newDiffCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Report what a change of definitions changes",
		Long: `Report what new definitions change: what features mean, which keep their state and
which begin anew, which services are affected, and what costs more or less. OLD and
NEW are files or folders, or either at a Git revision, REVISION:PATH.

The exit code is 2 if a feature of a service would lose its state: it begins anew or
is gone. The command does not know which features are asked for by name only.`,
		Example: `  weir diff main:config/features config/features
  weir diff --json old/ new/`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var registries [2]*features.Registry
			for i, arg := range args {
				var err error
				if registries[i], err = definitionsAt(cmd.Context(), arg); err != nil {
					return err
				}
			}
			d := diff.Of(registries[0], registries[1])
			if err := writeDiff(cmd.OutOrStdout(), d, asJSON); err != nil {
				return err
			}
			if lost := d.Loses(); len(lost) > 0 {
				return &losesState{lost}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func writeDiff(w io.Writer, d *diff.Difference, asJSON bool) error {
	if !asJSON {
		return d.WriteText(w)
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(d)
}

// definitionsAt loads definitions from a path or, if there is none with that name and it has the
// form REVISION:PATH, from a revision in git.
func definitionsAt(ctx context.Context, name string) (*features.Registry, error) {
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
	if err := extract(ctx, revision, path, folder); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	registry, err := definition.LoadFS(os.DirFS(folder), ".")
	if findings, ok := errors.AsType[definition.Findings](err); ok {
		for i := range findings {
			findings[i].File = revision + ":" + filepath.ToSlash(filepath.Join(path, findings[i].File))
		}
		return nil, findings
	}
	return registry, err
}

// extract writes the files of a path at a revision, a file or a folder, into a folder.
func extract(ctx context.Context, revision, path, folder string) error {
	var out, said bytes.Buffer
	git := exec.CommandContext(ctx, "git", "archive", "--format=tar", revision, "--", path)
	git.Stdout, git.Stderr = &out, &said
	if err := git.Run(); err != nil {
		if text := strings.TrimSpace(said.String()); text != "" {
			return errors.New(text)
		}
		return fmt.Errorf("git archive: %w", err)
	}
	files := tar.NewReader(&out)
	for {
		header, err := files.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		inner, err := filepath.Rel(filepath.Clean(path), header.Name)
		if err != nil || header.Typeflag != tar.TypeReg {
			continue
		}
		if inner == "." { // the path is a file
			inner = filepath.Base(path)
		}
		if !filepath.IsLocal(inner) {
			continue
		}
		to := filepath.Join(folder, inner)
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
