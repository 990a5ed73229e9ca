//go:build !production

package main

import (
	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/cmd/weir/demo"
)

// tryOut says how to try Weir out.
const tryOut = "\n\nTry it out with nothing else installed:  weir demo"

// trying are the commands that servers do not need: the demo's stand-ins for Kafka and Redis are no part of the image.
func trying() []*cobra.Command { return []*cobra.Command{demo.New(newRootCommand)} }
