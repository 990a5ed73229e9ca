package main

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// report is what a command prints in words or, with --json, as one JSON object.
type report interface{ WriteText(*strings.Builder) }

// output prints reports in the form that a flag chooses.
type output struct{ asJSON bool }

func (o *output) flag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print one JSON object")
}

func (o *output) print(cmd *cobra.Command, r report) error {
	if !o.asJSON {
		return writeText(cmd.OutOrStdout(), r.WriteText)
	}
	out := json.NewEncoder(cmd.OutOrStdout())
	out.SetIndent("", "  ")
	return out.Encode(r)
}

// writeText makes a text and writes it at once.
func writeText(out io.Writer, text func(*strings.Builder)) error {
	var b strings.Builder
	text(&b)
	_, err := io.WriteString(out, b.String())
	return err
}
