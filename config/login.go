package config

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	kafkasasl "github.com/segmentio/kafka-go/sasl"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/aws"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/weir-stream/weir/internal/credentials"
)

// tokenTime bounds a request for a token, and tokenReserve is how long before its expiry a token is replaced: a broker
// may be slow, and its clock may differ.
const (
	tokenTime    = 10 * time.Second
	tokenReserve = 30 * time.Second
)

// login returns how both Kafka clients authenticate; nil if they do not. Passwords, secrets and tokens are read from
// their files again at each login, so that changed ones need no restart.
func (s SASL) login() (sasl.Mechanism, error) {
	switch s.Mechanism {
	case "plain":
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			password, err := secret("kafka.sasl.password_file", s.PasswordFile, s.Password)
			return plain.Auth{User: s.Username, Pass: password}, err
		}), nil
	case "scram-sha-256":
		return scram.Sha256(s.scram), nil
	case "scram-sha-512":
		return scram.Sha512(s.scram), nil
	case "oauthbearer":
		token, err := s.OAuth.tokens()
		if err != nil {
			return nil, err
		}
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			text, err := token()
			return oauth.Auth{Token: text, Extensions: s.OAuth.extensions()}, err
		}), nil
	case "aws-msk-iam":
		return aws.ManagedStreamingIAM(mskLogin()), nil
	case "gssapi":
		return kerberosLogin{s.Kerberos, s.Username}, nil
	default:
		return nil, nil
	}
}

func (s SASL) scram(context.Context) (scram.Auth, error) {
	password, err := secret("kafka.sasl.password_file", s.PasswordFile, s.Password)
	return scram.Auth{User: s.Username, Pass: password}, err
}

// secret returns the content of a file, or the configured value if no file is configured. An empty file is an error: the
// login would be left out without a word, or show no password.
func secret(key, file string, given Secret) (string, error) {
	if file == "" {
		return string(given), nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %w", key, err)
	}
	found := strings.TrimRight(string(text), "\r\n")
	if found == "" {
		return "", fmt.Errorf("%s: %s is empty", key, file)
	}
	return found, nil
}

// tokens returns the source of each login's token: the file, or the issuer, whose tokens are reused
// until shortly before they expire. The error names the setting that cannot be used.
func (o OAuth) tokens() (func() (string, error), error) {
	if o.TokenFile != "" {
		return func() (string, error) { return secret("kafka.sasl.oauth.token_file", o.TokenFile, "") }, nil
	}
	client := &http.Client{Timeout: tokenTime}
	if o.CA != "" {
		authorities, err := credentials.Authorities(o.CA)
		if err != nil {
			return nil, fmt.Errorf("kafka.sasl.oauth.ca: %w", err)
		}
		client.Transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities},
		}
	}
	source := oauth2.ReuseTokenSourceWithExpiry(nil, issuer{o, client}, tokenReserve)
	return func() (string, error) {
		token, err := source.Token()
		if err != nil {
			return "", err
		}
		return token.AccessToken, nil
	}, nil
}

// issuer asks for a token by the client credentials grant of OAuth 2.0 (RFC 6749, section 4.4).
type issuer struct {
	OAuth
	client *http.Client
}

func (i issuer) Token() (*oauth2.Token, error) {
	password, err := secret("kafka.sasl.oauth.client_secret_file", i.ClientSecretFile, i.ClientSecret)
	if err != nil {
		return nil, err
	}
	grant := clientcredentials.Config{ClientID: i.ClientID, ClientSecret: password, TokenURL: i.TokenURL, Scopes: i.Scopes}
	token, err := grant.Token(context.WithValue(context.Background(), oauth2.HTTPClient, i.client))
	var refusal *oauth2.RetrieveError
	if errors.As(err, &refusal) && refusal.ErrorCode != "" { // its text contains the whole response
		err = fmt.Errorf("%s: %s %s", refusal.Response.Status, refusal.ErrorCode, refusal.ErrorDescription)
	}
	if err != nil {
		return nil, fmt.Errorf("kafka.sasl.oauth.token_url: no token from %s: %w", i.TokenURL, err)
	}
	return token, nil
}

// extensions returns the SASL extensions (RFC 7628) by their names.
func (o OAuth) extensions() map[string]string {
	all := map[string]string{}
	for _, pair := range o.Extensions {
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}
	return all
}

// mechanism adapts a login to kafka-go, which has the same steps with other names.
type mechanism struct{ sasl.Mechanism }

// Start returns the login's first message.
func (m mechanism) Start(ctx context.Context) (kafkasasl.StateMachine, []byte, error) {
	broker := ""
	if to := kafkasasl.MetadataFromContext(ctx); to != nil {
		broker = net.JoinHostPort(to.Host, strconv.Itoa(to.Port))
	}
	session, first, err := m.Authenticate(ctx, broker)
	return &steps{Session: session}, first, err
}

type steps struct {
	sasl.Session
	last bool // the session is done, except for the broker's reply to its last response
}

// Next answers a broker's challenge.
func (s *steps) Next(_ context.Context, challenge []byte) (done bool, response []byte, err error) {
	if s.last {
		return true, nil, nil
	}
	if done, response, err = s.Challenge(challenge); err != nil && len(challenge) > 0 {
		err = fmt.Errorf("%w: the broker says %q", err, challenge)
	}
	if s.last = done && len(response) > 0 && err == nil; s.last {
		return false, response, nil // kafka-go sends it only if the session goes on
	}
	return done, response, err
}
