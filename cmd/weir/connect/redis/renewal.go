package redisconn

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9/auth"

	"github.com/weir-stream/weir/config"
)

// renewal logs connections in with tokens that expire, and makes open connections log in again with the next token: the
// server ends a connection whose token has expired.
type renewal struct {
	user  string
	token func(context.Context) (config.Token, error)
	pause time.Duration // before a due replacement is requested again

	mu        sync.Mutex
	latest    config.Token
	listeners map[auth.CredentialsListener]struct{} // one of each open connection
	timer     *time.Timer                           // runs while there are listeners
}

func newRenewal(user string, token func(context.Context) (config.Token, error)) *renewal {
	return &renewal{user: user, token: token, pause: 10 * time.Second, listeners: map[auth.CredentialsListener]struct{}{}}
}

// Subscribe returns the credentials of a new connection, whose listener then receives later ones.
func (r *renewal) Subscribe(listener auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	token, err := r.token(context.Background())
	if err != nil {
		return nil, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	credentials := r.take(token)
	r.listeners[listener] = struct{}{}
	if r.timer == nil {
		r.timer = time.AfterFunc(r.wait(), r.renew)
	}
	return credentials, func() error { r.unsubscribe(listener); return nil }, nil
}

func (r *renewal) unsubscribe(listener auth.CredentialsListener) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.listeners, listener)
	if len(r.listeners) == 0 && r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
}

// renew asks for the next token and hands it to the open connections. If there is none yet, it asks again while the
// present token is still valid.
func (r *renewal) renew() {
	token, err := r.token(context.Background())
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer == nil {
		return
	}
	if err == nil && token.Expires.After(r.latest.Expires) {
		credentials := r.take(token)
		for listener := range r.listeners {
			listener.OnNext(credentials)
		}
	}
	r.timer.Reset(r.wait())
}

// take keeps the token unless another one lasts longer, and returns the credentials of the one that
// is kept.
func (r *renewal) take(token config.Token) auth.Credentials {
	if token.Expires.After(r.latest.Expires) {
		r.latest = token
	}
	return auth.NewBasicCredentials(r.user, r.latest.Password)
}

// wait returns how long to keep the latest token.
func (r *renewal) wait() time.Duration {
	return max(time.Until(r.latest.Replace), r.pause)
}
