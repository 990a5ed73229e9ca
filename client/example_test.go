package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/weir-stream/weir/client"
)

func Example() {
	address := startServer() // such as http://localhost:8080
	weir := client.New(address, client.WithToken("secret"))

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	answer, err := weir.Query(ctx, client.Question{
		Service: "payment_risk",
		Entities: []client.Entity{
			{"device_id": "d000001", "user_id": "u000001"},
			{"device_id": "d000002", "user_id": "u000002"},
			{"device_id": "d000003", "user_id": "u000003"},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, result := range answer.Results {
		amount := result.Features["user_amount_1d"]
		if spent, ok := amount.Float(); amount.Known() && ok {
			fmt.Println(spent, amount.Status)
		} else {
			fmt.Println("unknown, which is not 0:", amount.Status)
		}
	}
	// Output:
	// 99.75 PRESENT
	// 0 NOT_FOUND
	// unknown, which is not 0: UNAVAILABLE
}

// The pending payment counts before it is on the bus.
func ExampleClient_Query_pending() {
	weir := client.New(startServer())
	payment := map[string]any{
		"id": "t000042", "time": time.Date(2026, 7, 25, 12, 0, 0, 0, time.UTC).UnixMilli(),
		"user_id": "u000001", "device_id": "d000001", "amount": 12.5,
	}
	answer, err := weir.Query(context.Background(), client.Question{
		Features: []string{"user_amount_1d"},
		Entities: []client.Entity{{"user_id": "u000001"}},
		Pending:  []client.Event{{Stream: "transaction", Event: payment}},
	})
	if err != nil {
		log.Fatal(err)
	}
	amount := answer.Results[0].Features["user_amount_1d"]
	if spent, ok := amount.Number(); amount.Known() && ok { // with all its digits
		fmt.Println(spent)
	}
	// Output: 112.25
}

func ExampleClient_Query_members() {
	weir := client.New(startServer())
	answer, err := weir.Query(context.Background(), client.Question{
		Features: []string{"user_merchant_seen"},
		Entities: []client.Entity{{"user_id": "u000001"}},
		Members:  []any{"m000001", "m000009", "m000010"},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range answer.Results[0].Features["user_merchant_seen"].Members {
		merchant, _ := m.Member.String()
		if met, ok := m.Met.Bool(); m.Known() && ok { // each member has a status of its own
			fmt.Println(merchant, met)
		} else {
			fmt.Println(merchant, "may have been seen")
		}
	}
	// Output:
	// m000001 true
	// m000009 false
	// m000010 may have been seen
}

func ExampleError() {
	weir := client.New(startServer())
	_, err := weir.Feature(context.Background(), "device_tx_8d", client.Entity{"device_id": "d000001"})
	var refused *client.Error
	if errors.As(err, &refused) && refused.Code == client.UnknownFeature {
		fmt.Println(refused.Feature, "does not exist; perhaps", refused.Nearest)
	}
	// Output: device_tx_8d does not exist; perhaps device_tx_7d
}
