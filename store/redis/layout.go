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
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// secretField is the field of the layout that holds the namespace's packed.Secret.
const secretField = "secret"

// layoutError is the error for a namespace with another layout than wanted. It is a store.ErrLayout.
type layoutError struct {
	Namespace, What, Found, Wanted string
}

func (e *layoutError) Error() string {
	if e.What == secretField { // the value must not be shown
		return fmt.Sprintf("namespace %q has %s secret to hash values with, so its state cannot be read: use another namespace", e.Namespace, e.Found)
	}
	if e.What == formatField {
		return fmt.Sprintf("namespace %q was written in layout %s, and this version of Weir reads and writes layout %s only: "+
			"use a version that knows layout %[2]s, or another namespace, into which the log is read from its start",
			e.Namespace, e.Found, e.Wanted)
	}
	if e.What == keyspace.ShardsField {
		return fmt.Sprintf("namespace %q has %s shards, and this process began with %s: start it again", e.Namespace, e.Found, e.Wanted)
	}
	return fmt.Sprintf("namespace %q was made with %s %s, not %s: use %s %[3]s, or another namespace",
		e.Namespace, e.What, e.Found, e.Wanted, e.What)
}

func (e *layoutError) Unwrap() error { return store.ErrLayout }

// Adopt takes the number of shards from the namespace; a new namespace gets the store's number. Then it checks the rest
// of the layout. It must be the first call of the store, and no other call may run meanwhile.
func (s *Store) Adopt(ctx context.Context) error {
	found, err := s.readLayout(ctx)
	if err != nil {
		return err
	}
	if shards, err := strconv.Atoi(found[keyspace.ShardsField]); err == nil && shards > 0 {
		s.spread(shards)
	}
	return s.take(found)
}

// readLayout reads the fields of the layout; none if the namespace does not exist yet.
func (s *Store) readLayout(ctx context.Context) (map[string]string, error) {
	s.secretAsked.Store(time.Now().UnixMilli())
	command := redis.NewMapStringStringCmd(ctx, "hgetall", keyspace.LayoutKey(s.namespace))
	if err := s.sendAbout(ctx, keyspace.LayoutKey(s.namespace), command); err != nil {
		return nil, fmt.Errorf("read the layout of namespace %q: %w", s.namespace, err)
	}
	return command.Val(), nil
}

// CheckLayout compares the namespace with the layout wanted, and learns its secret. It returns a
// layoutError if they differ; a namespace that does not exist yet fits.
func (s *Store) CheckLayout(ctx context.Context) error {
	found, err := s.readLayout(ctx)
	if err != nil {
		return err
	}
	return s.take(found)
}

// take compares a layout with the one wanted, and learns its secret.
func (s *Store) take(found map[string]string) error {
	for what, wanted := range s.layout() {
		if found[what] != "" && found[what] != wanted {
			other := &layoutError{Namespace: s.namespace, What: what, Found: found[what], Wanted: wanted}
			s.other.Store(other)
			return other
		}
	}
	s.other.Store(nil)
	if len(found) == 0 {
		return nil
	}
	if found[secretField] == "" {
		return &layoutError{Namespace: s.namespace, What: secretField, Found: "no"}
	}
	secret, err := packed.ParseSecret(found[secretField])
	if err != nil {
		return &layoutError{Namespace: s.namespace, What: secretField, Found: "a damaged"}
	}
	s.secret.Store(&secret)
	s.resharding.Store(found[keyspace.ReshardingField] != "")
	return nil
}

// Create makes the namespace if it does not exist, checks its layout and loads the scripts. If the master of the layout
// does not answer and others do, the layout found earlier is used.
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
		secret = *known // the layout may have been lost, but not the state written with the secret
	}
	layout := s.layout()
	layout[secretField] = secret.Text()
	// A process that finds one of the other fields finds the secret too. If several processes draw a secret at once,
	// the first secret stays, and the others read it below.
	for _, what := range []string{secretField, keyspace.HashingField, formatField, keyspace.ShardsField} {
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
	return map[string]string{formatField: strconv.Itoa(format), keyspace.ShardsField: strconv.Itoa(len(s.tags)), keyspace.HashingField: s.hashing.Layout()}
}

// maxSecretAge is after how long the layout is checked again: it changes if the namespace was emptied and created
// again, or spread over more shards, while this process ran.
const maxSecretAge = time.Second

// reshardingAge is the same while the namespace is being spread over more shards. For that long after the switch
// questions are answered from the old shards.
const reshardingAge = 50 * time.Millisecond

// keyed returns the namespace's secret. If there was no layout at the last check, it reads the layout again. A zero
// secret means that there is still none, and so no state was written before. The error is a layoutError if the
// namespace has another layout now.
func (s *Store) keyed(ctx context.Context) (packed.Secret, error) {
	if err := s.moved(); err != nil {
		return packed.Secret{}, err
	}
	known := s.secret.Load()
	if known == nil {
		if err := s.CheckLayout(ctx); err != nil {
			return packed.Secret{}, err
		}
		if known = s.secret.Load(); known == nil {
			return packed.Secret{}, nil
		}
	}
	return *known, nil
}

// untilRead returns how long the layout that was read last may be used.
func (s *Store) untilRead() time.Duration {
	age := maxSecretAge
	if s.resharding.Load() {
		age = reshardingAge
	}
	return time.Until(time.UnixMilli(s.secretAsked.Load()).Add(age))
}

// moved returns a layoutError if the namespace was found to have another layout, so that the keys of this store are no
// longer its keys. It does not wait: if the layout was read too long ago, it is read again in the background.
func (s *Store) moved() error {
	asked := s.secretAsked.Load()
	if s.untilRead() <= 0 && s.secretAsked.CompareAndSwap(asked, time.Now().UnixMilli()) {
		go func() {
			_ = s.CheckLayout(context.Background()) // it has the deadline of any command, and Ready reports its error
		}()
	}
	if other := s.other.Load(); other != nil {
		return other
	}
	return nil
}

// Secret returns the secret with which packed state is hashed.
func (s *Store) Secret(ctx context.Context) (packed.Secret, error) { return s.keyed(ctx) }

// learnSecret sets the namespace's secret for hashing.
func (w *writer) learnSecret(ctx context.Context) (err error) {
	w.packer.Secret, err = w.store.keyed(ctx)
	if err == nil && w.packer.Secret == (packed.Secret{}) {
		err = fmt.Errorf("namespace %q has not been made", w.store.namespace)
	}
	return err
}
