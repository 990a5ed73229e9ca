package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
)

// Client sends questions to one server, or to several behind one address.
type Client struct {
	address string
	http    *http.Client
	token   func(context.Context) (string, error) // nil for none
	retries Retries
	random  func() float64 // at least 0 and below 1
}

// Option is an option of New.
type Option func(*Client)

// WithToken sends a bearer token with each request.
func WithToken(token string) Option {
	return WithTokens(func(context.Context) (string, error) { return token, nil })
}

// WithTokens calls a function for the bearer token of each request, for tokens that expire.
func WithTokens(token func(context.Context) (string, error)) Option {
	return func(c *Client) { c.token = token }
}

// WithHTTP sends requests with an HTTP client, for example one with certificates or a Timeout. The
// default one keeps more connections open than Go's own, and has no timeout except that of the
// context.
func WithHTTP(h *http.Client) Option {
	return func(c *Client) { c.http = h }
}

// WithRetries sets how often, and how soon, a question is retried.
func WithRetries(r Retries) Option {
	return func(c *Client) { c.retries = r }
}

// New makes a client of the server at an address such as http://localhost:8080. It connects with
// the first request.
func New(address string, options ...Option) *Client {
	c := &Client{address: strings.TrimSuffix(address, "/"), retries: DefaultRetries, random: rand.Float64}
	for _, option := range options {
		option(c)
	}
	if c.http == nil {
		c.http = &http.Client{CheckRedirect: keepQuestion}
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			t = t.Clone()
			t.MaxIdleConnsPerHost = t.MaxIdleConns
			c.http.Transport = t
		}
	}
	return c
}

// keepQuestion does not follow redirects that would send a GET without the question.
func keepQuestion(r *http.Request, via []*http.Request) error {
	if r.Method != http.MethodPost || len(via) >= 10 {
		return http.ErrUseLastResponse
	}
	return nil
}

// Query sends a question. If the server refuses it, the error is an *Error.
func (c *Client) Query(ctx context.Context, q Question) (*Answer, error) {
	body, err := q.encode()
	if err != nil {
		return nil, err
	}
	content, err := c.persist(ctx, func() ([]byte, error) { return c.post(ctx, "/v1/query", body) })
	if err != nil {
		return nil, err
	}
	answer := new(Answer)
	if err := json.Unmarshal(content, answer); err != nil {
		return nil, fmt.Errorf("weir: the answer cannot be read: %w", err)
	}
	if len(answer.Results) != len(q.Entities) {
		return nil, fmt.Errorf("weir: %d entities were asked about, but %d are answered", len(q.Entities), len(answer.Results))
	}
	return answer, nil
}

// Feature asks for one feature of one entity at the present moment.
func (c *Client) Feature(ctx context.Context, name string, e Entity) (Feature, error) {
	answer, err := c.Query(ctx, Question{Features: []string{name}, Entities: []Entity{e}})
	if err != nil {
		return Feature{}, err
	}
	return answer.Results[0].Features[name], nil
}

// post makes one attempt. A failure that may be retried is a *transient.
func (c *Client) post(ctx context.Context, path string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("weir: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	if c.token != nil {
		token, err := c.token(ctx)
		if err != nil {
			return nil, fmt.Errorf("weir: the token: %w", err)
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token)) // a file of a token ends with a line end
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, broken(ctx, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, broken(ctx, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, refusal(response, content)
	}
	return content, nil
}

// refusal returns the error for a response that is not a 200.
func refusal(r *http.Response, content []byte) error {
	var failure struct{ Error *Error }
	if json.Unmarshal(content, &failure) != nil || failure.Error == nil {
		failure.Error = &Error{Message: "the server answered " + r.Status + ", but not as Weir does"}
	}
	failure.Error.Status = r.StatusCode
	if after, ok := retryAfter(r); ok && r.StatusCode == http.StatusServiceUnavailable {
		return &transient{failure.Error, after}
	}
	return failure.Error
}
