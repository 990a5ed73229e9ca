package redisconn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/auth"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/testkit"
)

// mint makes tokens that must be replaced immediately.
type mint struct {
	mu   sync.Mutex
	made int
	err  error
}

func (m *mint) token(context.Context) (config.Token, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made++
	now := time.Now()
	return config.Token{Password: fmt.Sprint(m.made), Expires: now.Add(time.Hour), Replace: now}, m.err
}

func (m *mint) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func (m *mint) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.made
}

// listener is an open connection: a channel of the passwords with which it is to log in again.
type listener chan string

func (l listener) OnNext(c auth.Credentials) {
	_, password := c.BasicAuth()
	select {
	case l <- password:
	default: // nobody reads any more
	}
}
func (l listener) OnError(error) {}

func subscribe(t *testing.T, r *renewal) (l listener, leave auth.UnsubscribeFunc) {
	t.Helper()
	l = make(listener, 1000)
	_, leave, err := r.Subscribe(l)
	if err != nil {
		t.Fatal(err)
	}
	return l, leave
}

// Every open connection gets the next token, also after failures. No tokens are requested while no connection is open.
func TestRenewal(t *testing.T) {
	m := &mint{}
	r := newRenewal("weir", m.token)
	r.pause = time.Millisecond
	one, leaveOne := subscribe(t, r)
	other, leaveOther := subscribe(t, r)
	<-one
	<-other

	m.fail(errors.New("away"))
	before := m.count()
	testkit.Eventually(t, time.Minute, "it is asked again", func() (bool, string) { n := m.count(); return n > before+3, fmt.Sprint(n) })
	m.fail(nil)
	for len(one) > 0 {
		<-one
	}
	<-one

	if err := errors.Join(leaveOne(), leaveOther(), leaveOther()); err != nil {
		t.Error(err)
	}
	r.mu.Lock()
	if r.timer != nil || len(r.listeners) != 0 {
		t.Errorf("after the last connection there are %d listeners and the timer %v, want none", len(r.listeners), r.timer)
	}
	r.mu.Unlock()
	again, leave := subscribe(t, r)
	<-again
	if err := leave(); err != nil {
		t.Error(err)
	}
}
