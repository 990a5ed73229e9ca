// Package schemas fetches the schemas that records name from a Schema Registry, and registers those
// of records that are written.
package schemas

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/metric"
	"github.com/weir-stream/weir/pipeline/retry"
)

const (
	// patience is how long Supply waits for a schema that is being fetched.
	patience = 300 * time.Millisecond
	// unknownFor is how long an ID that the registry does not know is not asked about again.
	unknownFor = 10 * time.Second
)

// Config configures a Cache.
type Config struct {
	Client  *sr.Client    // nil for no registry
	Timeout time.Duration // of one request
	Metrics prometheus.Registerer
	Logger  *slog.Logger
	// After runs a function after a time; by default time.AfterFunc.
	After func(time.Duration, func())
}

// Cache holds the schemas of one registry, each fetched once. It is safe for concurrent use.
type Cache struct {
	cfg     Config
	ctx     context.Context
	end     context.CancelFunc
	running sync.WaitGroup
	fetches *prometheus.CounterVec

	mu         sync.Mutex
	byID       map[int32]*schema
	registered map[[2]string]*registration // by subject and schema
}

// schema is a requested schema.
type schema struct {
	tried   chan struct{} // closed after the first request
	done    chan struct{} // closed once the fields below are set
	content record.Registered
	unknown string // why it does not exist

	mu  sync.Mutex
	err error // of the last try, while it is being fetched
}

// New makes a cache; Close ends it.
func New(cfg Config) *Cache {
	if cfg.After == nil {
		cfg.After = func(d time.Duration, do func()) { time.AfterFunc(d, do) }
	}
	s := &Cache{cfg: cfg, byID: map[int32]*schema{}, registered: map[[2]string]*registration{}}
	s.fetches = metric.For(cfg.Metrics).Counters("weir_schema_fetches_total",
		"Requests for schemas to the registry by outcome: fetched, unknown, failed.", "outcome")
	s.ctx, s.end = context.WithCancel(context.Background())
	for _, outcome := range []string{"fetched", "unknown", "failed"} {
		s.fetches.WithLabelValues(outcome)
	}
	return s
}

// Close ends all fetches.
func (s *Cache) Close() {
	s.end()
	s.running.Wait()
}

// unavailableError is the error for a needed schema that the registry does not return.
type unavailableError struct {
	ID  int32
	Err error
}

func (e *unavailableError) Error() string {
	return fmt.Sprintf("schema %d is needed and cannot be fetched: %v", e.ID, e.Err)
}

func (e *unavailableError) Unwrap() error { return e.Err }

// Passing reports whether the registry may still answer.
func (e *unavailableError) Passing() bool { return errors.Is(e.Err, errSlow) }

// StopReason returns why a partition is stopped, as a label of the metrics.
func (*unavailableError) StopReason() string { return "schema_registry" }

// ErrNoRegistry is returned if a schema is needed and no registry is configured.
var ErrNoRegistry = errors.New("registry.url is not set")

var errSlow = errors.New("the registry has not answered yet")

// Supply gives a format the schema that it lacks, or makes it refuse records that name it if the
// registry has none. The error is an *unavailableError: the registry is asked in the background,
// and Supply must be called again.
func (s *Cache) Supply(ctx context.Context, missing *record.MissingSchema) error {
	if s.cfg.Client == nil {
		return &unavailableError{missing.ID, ErrNoRegistry}
	}
	f := s.fetched(missing.ID)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-f.tried:
	case <-timer.C:
		return &unavailableError{missing.ID, errSlow}
	case <-ctx.Done():
		return &unavailableError{missing.ID, ctx.Err()}
	}
	select {
	case <-f.done:
	default:
		return &unavailableError{missing.ID, f.failure()}
	}
	if f.unknown == "" {
		missing.Give(f.content)
		return nil
	}
	missing.Refuse(f.unknown)
	s.cfg.After(unknownFor, missing.Forget)
	return nil
}

func (f *schema) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func (f *schema) failed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// fetched returns a schema that was fetched or is now being fetched.
func (s *Cache) fetched(id int32) *schema {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.byID[id]
	if f == nil {
		f = &schema{tried: make(chan struct{}), done: make(chan struct{})}
		s.byID[id] = f
		s.running.Go(func() { s.fetch(id, f) })
	}
	return f
}

// fetch asks for a schema until the registry has answered.
func (s *Cache) fetch(id int32, f *schema) {
	trouble := retry.Trouble{Log: s.cfg.Logger.With("schema", id), What: "fetching a schema"}
	once := sync.OnceFunc(func() { close(f.tried) })
	for {
		err := s.ask(id, f)
		if err == nil {
			trouble.Over()
			break
		}
		s.fetches.WithLabelValues("failed").Inc()
		f.failed(err)
		once()
		if !retry.Wait(s.ctx, trouble.Failed(err)) {
			return
		}
	}
	outcome := "fetched"
	if f.unknown != "" {
		outcome = "unknown"
		s.cfg.Logger.Warn("records name a schema that cannot be used; they become dead letters", "schema", id, "reason", f.unknown)
		s.cfg.After(unknownFor, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.byID, id)
		})
	}
	s.fetches.WithLabelValues(outcome).Inc()
	close(f.done)
	once()
}

func (s *Cache) ask(id int32, f *schema) error {
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.Timeout)
	defer cancel()
	found, err := s.cfg.Client.SchemaByID(ctx, int(id))
	if Lacks(err) {
		f.unknown = fmt.Sprintf("schema %d is not in the registry", id)
		return nil
	}
	if err != nil {
		return err
	}
	content, err := resolve(ctx, s.cfg.Client, found)
	if Lacks(err) {
		f.unknown = fmt.Sprintf("schema %d refers to one that is not in the registry: %v", id, err)
		return nil
	}
	f.content = content
	return err
}

// The codes by which a registry says that it has no such subject, version or schema. A 404 without one of them comes
// from another server, such as a proxy.
const (
	noSubject = 40401
	noVersion = 40402
	noSchema  = 40403
)

// Lacks reports whether an error means that a registry has no such subject, version or schema.
func Lacks(err error) bool {
	refused, ok := errors.AsType[*sr.ResponseError](err)
	return ok && (refused.ErrorCode == noSubject || refused.ErrorCode == noVersion || refused.ErrorCode == noSchema)
}

// Latest returns the latest schema of a subject.
func Latest(ctx context.Context, client *sr.Client, subject string) (record.Registered, error) {
	found, err := client.SchemaByVersion(ctx, subject, -1)
	if err != nil {
		return record.Registered{}, err
	}
	return resolve(ctx, client, found.Schema)
}

// resolve fetches all schemas that a schema refers to.
func resolve(ctx context.Context, client *sr.Client, s sr.Schema) (record.Registered, error) {
	content := record.Registered{Type: s.Type.String(), Text: s.Schema}
	seen := map[sr.SchemaReference]bool{}
	var add func(references []sr.SchemaReference) error
	add = func(references []sr.SchemaReference) error {
		for _, r := range references {
			if seen[r] {
				continue
			}
			seen[r] = true
			found, err := client.SchemaByVersion(sr.WithParams(ctx, sr.ShowDeleted), r.Subject, r.Version)
			if err != nil {
				return err
			}
			if err := add(found.References); err != nil {
				return err
			}
			content.References = append(content.References, record.Reference{Name: r.Name, Text: found.Schema.Schema})
		}
		return nil
	}
	return content, add(s.References)
}
