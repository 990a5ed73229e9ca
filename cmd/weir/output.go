package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"
)

// report is what a command prints in words or, with --json, as one JSON object.
type report interface{ WriteText(io.Writer) error }

// output prints reports in the form that a flag chooses.
type output struct{ asJSON bool }

func (o *output) flag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print one JSON object")
}

func (o *output) print(cmd *cobra.Command, r report) error {
	if !o.asJSON {
		return r.WriteText(cmd.OutOrStdout())
	}
	out := json.NewEncoder(cmd.OutOrStdout())
	out.SetIndent("", "  ")
	return out.Encode(r)
}
