// Command jars fetches the jars of the servers that tests run on Java, unless they are there.
package main

import (
	"fmt"
	"os"

	"github.com/weir-stream/weir/internal/testkit/ignitetest"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/server"
)

func main() {
	for _, jars := range []*server.Jars{kafkatest.Jars(), ignitetest.Jars()} {
		home, err := jars.Fetch()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(home)
	}
}
