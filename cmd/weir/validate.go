package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	root "github.com/weir-stream/weir"
	"github.com/weir-stream/weir/cmd/weir/say"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/schemas"
)

func newValidateCommand() *cobra.Command {
	var registryURL string
	var verbose bool
	cmd := &cobra.Command{
		Use:   "validate PATH...",
		Short: "Check feature definitions",
		Long: `Check the feature definitions in files and in the *.yaml of folders, all of them
together. Each finding is a line file:line:column: message.

With --registry, what streams read is compared with the latest schema of the subject
TOPIC-value, for records that name schemas. WEIR_REGISTRY_USERNAME, _PASSWORD, _TOKEN
and _TLS_… are the credentials.`,
		Example: `  weir validate config/features
  weir validate config/features --verbose
  weir validate config/features --registry https://registry:8081`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			registry, err := loadDefinitions(cmd.Context(), paths, registryURL)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), "valid:", say.Summary(registry)); err != nil || !verbose {
				return err
			}
			return sayMeanings(cmd.OutOrStdout(), registry)
		},
	}
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "say in words what each feature computes, and for each of what")
	cmd.Flags().StringVar(&registryURL, "registry", "", "URL of a Schema Registry whose latest schemas are compared")
	return cmd
}

// sayMeanings writes what each feature computes; of an expression, its definition.
func sayMeanings(to io.Writer, r *features.Registry) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, f := range r.Features {
		fmt.Fprintf(w, "%s\t%s\n", f.Name, cmp.Or(f.Meaning(), f.Definition))
	}
	return w.Flush()
}

// loadDefinitions loads definitions and checks them against the schemas of a registry, unless its
// URL is empty.
func loadDefinitions(ctx context.Context, paths []string, registryURL string) (*features.Registry, error) {
	if registryURL == "" {
		return definition.Load(paths...)
	}
	cfg, err := config.Load("", nil)
	if err != nil {
		return nil, err
	}
	cfg.Registry.URL = registryURL
	client, err := cfg.SchemaRegistry()
	if err != nil {
		return nil, err
	}
	return definition.LoadLatest(func(topic string) (record.Registered, error) {
		return schemas.Latest(ctx, client, topic+"-value")
	}, paths...)
}

func newSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of definitions, for editors",
		Long: `Print the JSON Schema (draft 2020-12) of a definitions file. With it an editor
completes keys and marks wrong ones; weir validate finds the rest.`,
		Example: "  weir schema > weir.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(root.DefinitionsSchema)
			return err
		},
	}
}
