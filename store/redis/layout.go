package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// secretField is the field of the layout that holds the namespace's packed.Secret.
const secretField = "secret"

// LayoutError says that a namespace was made in another way than is asked for.
type LayoutError struct {
	Namespace, What, Found, Wanted string
}

func (e *LayoutError) Error() string {
	if e.What == secretField { // the value is for nobody's eyes
		return fmt.Sprintf("namespace %q has %s secret to hash values with, so its state cannot be read: use another namespace", e.Namespace, e.Found)
	}
	if e.What == formatField {
		return fmt.Sprintf("namespace %q was written in layout %s, and this version of Weir reads and writes layout %s only: "+
			"use a version that knows layout %[2]s, or another namespace, into which the log is read from its start",
			e.Namespace, e.Found, e.Wanted)
	}
	return fmt.Sprintf("namespace %q was made with %s %s, not %s: use %s %[3]s, or another namespace",
		e.Namespace, e.What, e.Found, e.Wanted, e.What)
}

// CheckLayout compares the namespace with the layout wanted, and learns its secret. It
// is a LayoutError if they differ; a namespace that is not there yet fits.
func (s *Store) CheckLayout(ctx context.Context) error {
	s.secretAsked.Store(time.Now().UnixMilli())
	command := redis.NewMapStringStringCmd(ctx, "hgetall", keyspace.LayoutKey(s.namespace))
	if err := s.sendAbout(ctx, keyspace.LayoutKey(s.namespace), command); err != nil {
		return fmt.Errorf("read the layout of namespace %q: %w", s.namespace, err)
	}
	found := command.Val()
	for what, wanted := range s.layout() {
		if found[what] != "" && found[what] != wanted {
			return &LayoutError{Namespace: s.namespace, What: what, Found: found[what], Wanted: wanted}
		}
	}
	if len(found) == 0 {
		return nil
	}
	if found[secretField] == "" {
		return &LayoutError{Namespace: s.namespace, What: secretField, Found: "no"}
	}
	secret, err := packed.ParseSecret(found[secretField])
	if err != nil {
		return &LayoutError{Namespace: s.namespace, What: secretField, Found: "a damaged"}
	}
	s.secret.Store(&secret)
	return nil
}

// Create makes the namespace where it is not there yet, checks its layout and
// loads the scripts. Where the master of the layout does not answer and others do, the
// layout that was found before holds.
func (s *Store) Create(ctx context.Context) error {
	err := s.CheckLayout(ctx)
	if errors.Is(err, state.ErrUnavailable) && s.secret.Load() != nil && s.down(ctx) == nil {
		return s.loadScripts(ctx)
	}
	if err != nil {
		return err
	}
	secret := packed.NewSecret()
	if known := s.secret.Load(); known != nil {
		secret = *known // the record may have been lost, and what was written with it not
	}
	layout := s.layout()
	layout[secretField] = secret.Text()
	// Whoever finds another field finds the secret too. Of several that draw one the
	// first one's stays, and the others read it below.
	for _, what := range []string{secretField, keyspace.HashingField, formatField, "shards"} {
		command := redis.NewBoolCmd(ctx, "hsetnx", keyspace.LayoutKey(s.namespace), what, layout[what])
		if err := s.sendAbout(ctx, keyspace.LayoutKey(s.namespace), command); err != nil {
			return fmt.Errorf("write the layout of namespace %q: %w", s.namespace, err)
		}
	}
	if err := s.CheckLayout(ctx); err != nil {
		return err
	}
	return s.loadScripts(ctx)
}

func (s *Store) layout() map[string]string {
	return map[string]string{formatField: strconv.Itoa(format), "shards": strconv.Itoa(len(s.tags)), keyspace.HashingField: s.hashing.Layout()}
}

// maxSecretAge is after how long it is looked whether the namespace has another secret:
// it has where it was emptied and made anew while this process went on.
const maxSecretAge = time.Second

// keyed is the namespace's secret. Where the layout was not there yet when it was last
// read, it is read again. A secret of zero says that there is none even now, and so
// nothing that was written before.
func (s *Store) keyed(ctx context.Context) (packed.Secret, error) {
	known := s.secret.Load()
	if known == nil {
		if err := s.CheckLayout(ctx); err != nil {
			return packed.Secret{}, err
		}
		if known = s.secret.Load(); known == nil {
			return packed.Secret{}, nil
		}
	}
	now, asked := time.Now().UnixMilli(), s.secretAsked.Load()
	if now-asked > maxSecretAge.Milliseconds() && s.secretAsked.CompareAndSwap(asked, now) {
		go func() {
			_ = s.CheckLayout(context.Background()) // its deadline is that of any command; Ready tells the error
		}()
	}
	return *known, nil
}

// Secret is the secret that packed state is hashed with.
func (s *Store) Secret(ctx context.Context) (packed.Secret, error) { return s.keyed(ctx) }
