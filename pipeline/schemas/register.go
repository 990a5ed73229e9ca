package schemas

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
)

// RegisterError is the error for a schema that the registry does not register.
type RegisterError struct {
	Subject string
	Err     error
}

func (e *RegisterError) Error() string {
	return fmt.Sprintf("the schema of %s is needed and cannot be registered: %v", e.Subject, e.Err)
}

func (e *RegisterError) Unwrap() error { return e.Err }

// StopReason returns why a partition is stopped, as a label of the metrics.
func (*RegisterError) StopReason() string { return "schema_registry" }

// registration is a request to register a schema.
type registration struct {
	done chan struct{} // closed once the fields below are set
	id   int32
	err  error
}

// Register returns the ID of a schema in Avro, and registers it if the subject does not have it. The registry is asked
// once. The error is a *RegisterError: the registry is asked in the background, and Register must be called again. It
// returns quickly.
func (s *Cache) Register(ctx context.Context, subject, schema string) (id int32, err error) {
	if s.cfg.Client == nil {
		return 0, &RegisterError{subject, ErrNoRegistry}
	}
	r := s.registration(subject, schema)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-r.done:
		err = r.err
	case <-timer.C:
		err = errSlow
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return 0, &RegisterError{subject, err}
	}
	return r.id, nil
}

// registration returns the request to register a schema: one that succeeded or is under way, or a new one.
func (s *Cache) registration(subject, schema string) *registration {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]string{subject, schema}
	if r := s.registered[key]; r != nil {
		return r
	}
	r := &registration{done: make(chan struct{})}
	s.registered[key] = r
	s.running.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, s.cfg.Timeout)
		defer cancel()
		id, err := s.cfg.Client.RegisterSchema(ctx, subject, sr.Schema{Schema: schema}, -1, -1)
		if r.id, r.err = int32(id), err; err != nil {
			s.mu.Lock()
			delete(s.registered, key) // the next caller tries again
			s.mu.Unlock()
		}
		close(r.done)
	})
	return r
}
