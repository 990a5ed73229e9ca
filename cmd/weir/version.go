package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/cmd/weir/node"
)

// Set for releases: go build -ldflags "-X main.release=1.2.3 …". Otherwise the binary reports what
// the Go tool has recorded.
var (
	release string // version, 1.2.3
	commit  string // hash
	date    string // of the commit, RFC 3339
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `Print the version, the commit and its date, the Go release and the machine that
the binary was built for.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version())
			return err
		},
	}
}

// thisBuild is this version, as processes report it.
func thisBuild() node.Build {
	info, _ := debug.ReadBuildInfo()
	b := node.Build{Release: releaseOf(info, release), Revision: commit}
	if info != nil {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Revision = cmp.Or(b.Revision, s.Value)
			}
		}
	}
	return b
}

// version describes this binary in one line.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return describe(info, release, commit, date)
}

// describe composes the version: the values set at build time, or what the Go tool knows, which may
// be nil.
func describe(info *debug.BuildInfo, release, commit, date string) string {
	stamped := map[string]string{}
	if info != nil {
		for _, s := range info.Settings {
			stamped[s.Key] = s.Value
		}
	}
	text := "weir " + releaseOf(info, release)
	if commit = cmp.Or(commit, stamped["vcs.revision"]); commit != "" {
		text += ", commit " + commit
		if date = cmp.Or(date, stamped["vcs.time"]); date != "" {
			text += " of " + date
		}
		if stamped["vcs.modified"] == "true" {
			text += ", with changes"
		}
	}
	return fmt.Sprintf("%s, %s %s/%s", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// releaseOf returns the version number: the value set at build time, or what the Go tool knows.
func releaseOf(info *debug.BuildInfo, release string) string {
	if info != nil {
		release = cmp.Or(release, strings.TrimPrefix(info.Main.Version, "v"))
	}
	return cmp.Or(release, "(unknown)")
}
