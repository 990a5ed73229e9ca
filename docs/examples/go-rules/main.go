// go-rules decides about payments by the rules of a YAML file, with features from Weir. It reads
// payments from standard input, each in the form of its event on the bus, and writes a decision for
// each as a line of JSON.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"time"

	"github.com/weir-stream/weir/client"
)

func main() {
	log.SetFlags(0)
	address := flag.String("weir", "http://localhost:8080", "address of Weir")
	timeout := flag.Duration("timeout", 100*time.Millisecond, "how long a payment may wait for its features")
	file := flag.String("rules", "rules.yaml", "file of rules")
	flag.Parse()

	text, err := os.ReadFile(*file)
	if err != nil {
		log.Fatal(err)
	}
	rules, err := parse(text)
	if err != nil {
		log.Fatalf("%s: %v", *file, err)
	}
	e := engine{weir: client.New(*address), timeout: *timeout, rules: rules}
	if err := e.run(context.Background(), os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// engine decides about payments.
type engine struct {
	weir    *client.Client
	timeout time.Duration // for the features of a payment, retries included
	rules   *ruleSet
}

// run decides about each payment in a stream of JSON.
func (e *engine) run(ctx context.Context, in io.Reader, out io.Writer) error {
	payments, decisions := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var event json.RawMessage
		if err := payments.Decode(&event); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("payment: %w", err)
		}
		d, err := e.decide(ctx, event)
		if err != nil {
			return fmt.Errorf("payment %s: %w", event, err)
		}
		if err := decisions.Encode(d); err != nil {
			return err
		}
	}
}

// decide decides about one payment, even if Weir does not answer.
func (e *engine) decide(ctx context.Context, event json.RawMessage) (*decision, error) {
	var payment struct {
		ID     string          `json:"event_id"`
		User   json.RawMessage `json:"user_id"` // as it is: Weir refuses a missing one, but not an empty text
		Device json.RawMessage `json:"device_id"`
		Amount json.RawMessage // a number, or a text that holds one, as Weir reads a decimal
	}
	if err := json.Unmarshal(event, &payment); err != nil {
		return nil, err
	}
	// Anything else, or nothing, is not 0, which would be approved: no comparison with NaN holds.
	amount := math.NaN()
	_ = json.Unmarshal(bytes.Trim(payment.Amount, `"`), &amount)
	features, err := e.ask(ctx, client.Entity{"user_id": payment.User, "device_id": payment.Device}, event)
	var d *decision
	if err != nil {
		log.Printf("payment %s is decided about without features: %v", payment.ID, err)
		d, err = e.rules.decideUnanswered(amount)
	} else {
		d, err = e.rules.decide(amount, features)
	}
	if err != nil {
		return nil, err
	}
	d.Payment = payment.ID
	return d, nil
}

// ask asks for the features of all rules at once, with the payment as a pending event.
func (e *engine) ask(ctx context.Context, who client.Entity, event json.RawMessage) (map[string]client.Feature, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	answer, err := e.weir.Query(ctx, client.Question{
		Service:  e.rules.Service,
		Entities: []client.Entity{who},
		Pending:  []client.Event{{Stream: "transaction", Event: event}},
	})
	if err != nil {
		return nil, err
	}
	return answer.Results[0].Features, nil
}
