package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/operate/featuretest"
)

func newTestCommand() *cobra.Command {
	var junit string
	cmd := &cobra.Command{
		Use:   "test [PATH...]",
		Short: "Run the tests of feature definitions",
		Long: `Run the tests in files, and in *_test.yaml in folders and below them; by default in the
current folder. A test has events, questions and expected answers; it needs neither
Kafka nor Redis. The command fails if a test fails.`,
		Example: `  weir test config/features
  weir test --junit report.xml`,
		RunE: func(cmd *cobra.Command, paths []string) error {
			if len(paths) == 0 {
				paths = []string{"."}
			}
			files, err := featuretest.Find(paths...)
			if err != nil {
				return err
			}
			var results []*featuretest.Result
			var bad []error
			tests, failed := 0, 0
			for _, file := range files {
				result, err := featuretest.Run(cmd.Context(), file)
				if err != nil {
					bad, results = append(bad, err), append(results, &featuretest.Result{File: file, Err: err})
					continue
				}
				results = append(results, result)
				tests, failed = tests+len(result.Tests), failed+result.Failed()
			}
			if err := writeText(cmd.OutOrStdout(), func(b *strings.Builder) { featuretest.WriteText(b, results) }); err != nil {
				return err
			}
			if junit != "" {
				bad = append(bad, writeJUnit(junit, results))
			}
			if failed > 0 {
				bad = append(bad, fmt.Errorf("%d of %s failed", failed, spelling.Counted(tests, "test")))
			}
			return errors.Join(bad...)
		},
	}
	cmd.Flags().StringVar(&junit, "junit", "", "write a JUnit report for CI to this file")
	return cmd
}

func writeJUnit(name string, results []*featuretest.Result) error {
	file, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("--junit: %w", err)
	}
	return errors.Join(featuretest.WriteJUnit(file, results), file.Close())
}
