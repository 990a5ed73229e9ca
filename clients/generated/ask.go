//go:build ignore

// Command ask asks a server the questions of a file, and prints each answer as the generated types
// hold it.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log"
	"os"

	"generated/api"
)

func main() {
	client, err := api.NewClientWithResponses(os.Args[1])
	check(err)
	text, err := os.ReadFile(os.Args[2])
	check(err)
	out := json.NewEncoder(os.Stdout)
	for line := range bytes.Lines(text) {
		var question api.Question
		check(json.Unmarshal(line, &question))
		answer, err := client.QueryWithResponse(context.Background(), nil, question)
		check(err)
		check(out.Encode(answer.JSON200))
	}
	catalogue, err := client.CatalogueWithResponse(context.Background())
	check(err)
	check(out.Encode(catalogue.JSON200))
	ready, err := client.ReadyWithResponse(context.Background())
	check(err)
	check(out.Encode(ready.JSON200))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
