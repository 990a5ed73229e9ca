package kafkatest

import (
	"context"
	"crypto/pbkdf2"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/scram"

	"github.com/weir-stream/weir/internal/testkit/auth"
	"github.com/weir-stream/weir/internal/testkit/server"
)

// These are the user that a secure listener knows, with PLAIN and both kinds of SCRAM, and the service
// of its principal.
const (
	SecureUser      = "weir"
	SecurePassword  = "hunter2-hunter2"
	KerberosService = "stream"
)

// secureListeners are the ports of a broker's TLS listeners.
type secureListeners struct{ sasl, mutual int }

func newSecureListeners(t testing.TB) (l secureListeners) {
	t.Helper()
	var errs [2]error
	l.sasl, errs[0] = server.FreePort()
	l.mutual, errs[1] = server.FreePort()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return l
}

// properties returns the options' settings and those of the listeners. A name that begins with + is
// added to a setting of the testkit.
func (l secureListeners) properties(t testing.TB, opts Options) map[string]string {
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	cert, key := opts.TLS.Issue("kafka")
	addresses := fmt.Sprintf("SASL_SSL://127.0.0.1:%d,SSL://127.0.0.1:%d", l.sasl, l.mutual)
	const scramLogin = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
	properties := map[string]string{
		"+listeners":                      addresses,
		"+advertised.listeners":           addresses,
		"+listener.security.protocol.map": "SASL_SSL:SASL_SSL,SSL:SSL",
		"ssl.keystore.type":               "PEM",
		"ssl.keystore.certificate.chain":  read(cert),
		"ssl.keystore.key":                read(key),
		"ssl.truststore.type":             "PEM",
		"ssl.truststore.certificates":     read(opts.TLS.CA),

		"listener.name.ssl.ssl.client.auth": "required",

		"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
		"listener.name.sasl_ssl.plain.sasl.jaas.config": fmt.Sprintf(
			"org.apache.kafka.common.security.plain.PlainLoginModule required user_%s=%q;", SecureUser, SecurePassword),
		"listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": scramLogin,
		"listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": scramLogin,
	}
	if opts.Issuer != nil {
		const listener = "listener.name.sasl_ssl.oauthbearer.sasl."
		properties["sasl.enabled.mechanisms"] += ",OAUTHBEARER"
		properties[listener+"jaas.config"] = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
		properties[listener+"server.callback.handler.class"] = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
		properties[listener+"oauthbearer.jwks.endpoint.url"] = opts.Issuer.KeysURL
		properties[listener+"oauthbearer.expected.audience"] = auth.IssuerAudience
	}
	if opts.Kerberos != nil {
		principal := KerberosService + "/127.0.0.1"
		properties["sasl.enabled.mechanisms"] += ",GSSAPI"
		properties["sasl.kerberos.service.name"] = KerberosService
		properties["listener.name.sasl_ssl.gssapi.sasl.jaas.config"] = fmt.Sprintf(
			"com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true keyTab=%q principal=%q;",
			opts.Kerberos.Keytab(principal), principal+"@"+auth.Realm)
	}
	if opts.ACLs {
		maps.Copy(properties, aclProperties)
	}
	maps.Copy(properties, opts.Config)
	return properties
}

// addSecureUser creates the user for both kinds of SCRAM.
func (b *Broker) addSecureUser() {
	b.t.Helper()
	client := b.Client()
	defer closeIdle(client)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	const iterations = 4096
	for mechanism, algorithm := range map[kafka.ScramMechanism]scram.Algorithm{
		kafka.ScramMechanismSha256: scram.SHA256, kafka.ScramMechanismSha512: scram.SHA512,
	} {
		salt := []byte("salt of " + algorithm.Name())
		salted, err := pbkdf2.Key(algorithm.Hash, SecurePassword, salt, iterations, algorithm.Hash().Size())
		if err != nil {
			b.t.Fatal(err)
		}
		// A request accepts one change of a user.
		reply, err := client.AlterUserScramCredentials(ctx, &kafka.AlterUserScramCredentialsRequest{
			Upsertions: []kafka.UserScramCredentialsUpsertion{
				{Name: SecureUser, Mechanism: mechanism, Iterations: iterations, Salt: salt, SaltedPassword: salted},
			},
		})
		if err == nil {
			for _, result := range reply.Results {
				err = errors.Join(err, result.Error)
			}
		}
		if err != nil {
			b.t.Fatalf("add the user %s: %v", SecureUser, err)
		}
	}
}

// SecureAddr returns the address of the TLS listener that requires a login.
func (b *Broker) SecureAddr() string { return fmt.Sprintf("127.0.0.1:%d", b.secure.sasl) }

// MutualAddr returns the address of the TLS listener that requires a client certificate.
func (b *Broker) MutualAddr() string { return fmt.Sprintf("127.0.0.1:%d", b.secure.mutual) }
