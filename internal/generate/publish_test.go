package generate

import (
	"context"
	"testing"
)

// Publish ends with its context, whether or not writing looks at it.
func TestPublishEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	written := 0
	err := Publish(ctx, New(1, Options{}), 0, 0, func(_ context.Context, events []Event) error {
		if written++; written == 3 {
			cancel()
		}
		return nil
	})
	if err != nil || written != 3 {
		t.Errorf("it has written %d times, error %v; want 3 and none", written, err)
	}
}
