package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/testkit/auth"
)

func rewrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// first returns the first message of a login at a broker.
func first(t *testing.T, login sasl.Mechanism, broker string) (string, error) {
	t.Helper()
	_, message, err := login.Start(sasl.WithMetadata(within(t), &sasl.Metadata{Host: broker, Port: 9098}))
	return string(message), err
}

func kafkaLogin(t *testing.T, s config.SASL) sasl.Mechanism {
	t.Helper()
	c := config.Default()
	c.Kafka.SASL = s
	transport, err := c.KafkaTransport()
	if err != nil {
		t.Fatal(err)
	}
	return transport.SASL
}

// A login uses the password in the file at that time, without a restart.
func TestPasswordsThatChange(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	rewrite(t, file, "old\n")

	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "events"), kfake.EnableSASL(), kfake.Superuser("PLAIN", "weir", "new"))
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	c := config.Default()
	c.Kafka.Brokers = broker.ListenAddrs()
	c.Kafka.SASL = config.SASL{Mechanism: "plain", Username: "weir", Password: "old", PasswordFile: file}

	if _, err := partitions(t, c); err == nil {
		t.Error("the broker accepts the old password")
	}
	rewrite(t, file, "new\n")
	if n, err := partitions(t, c); n != 3 || err != nil {
		t.Errorf("with the new password: %d partitions, error %v; want 3", n, err)
	}
	if err := pingAsProducer(t, c); err != nil {
		t.Error("the producer is refused with the new password:", err)
	}

	rewrite(t, file, "\n")
	if _, err = first(t, kafkaLogin(t, c.Kafka.SASL), "b-1"); err == nil || err.Error() != "kafka.sasl.password_file: "+file+" is empty" {
		t.Errorf("with an empty file: got error %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for _, mechanism := range []string{"plain", "scram-sha-256", "scram-sha-512"} {
		c.Kafka.SASL.Mechanism = mechanism
		_, err = first(t, kafkaLogin(t, c.Kafka.SASL), "b-1")
		if want := "kafka.sasl.password_file cannot be read: open " + file + ": no such file or directory"; err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", mechanism, err, want)
		}
	}
}

// A token of an issuer is used until it is about to expire; the secret is read for each request.
func TestTokensOfAnIssuer(t *testing.T) {
	issuer := auth.NewIssuer(t)
	file := filepath.Join(t.TempDir(), "secret")
	rewrite(t, file, "wrong")
	login := kafkaLogin(t, config.SASL{Mechanism: "oauthbearer", OAuth: config.OAuth{
		TokenURL: issuer.TokenURL, ClientID: auth.IssuerClient, ClientSecretFile: file, Scopes: []string{"events"},
		Extensions: []string{"logicalCluster=lkc-1", "identityPoolId=pool=1"},
	}})
	_, err := first(t, login, "b-1")
	want := "kafka.sasl.oauth.token_url: no token from " + issuer.TokenURL + ": 401 Unauthorized: invalid_client no such client, or another secret"
	if err == nil || err.Error() != want {
		t.Errorf("\ngot  %v\nwant %s", err, want)
	}

	rewrite(t, file, auth.IssuerSecret+"\n")
	message, err := first(t, login, "b-1")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(message, "n,,\x01auth=Bearer ey") || !strings.HasSuffix(message, "\x01identityPoolId=pool=1\x01logicalCluster=lkc-1\x01\x01") {
		t.Errorf("unexpected first message %q", message)
	}
	if again, err := first(t, login, "b-2"); again != message || err != nil || issuer.Issued() != 1 {
		t.Errorf("a second login does not reuse the token: %d were issued, error %v", issuer.Issued(), err)
	}

	issuer.Life = 29 * time.Second // less than the reserve
	login = kafkaLogin(t, config.SASL{Mechanism: "oauthbearer", OAuth: config.OAuth{
		TokenURL: issuer.TokenURL, ClientID: auth.IssuerClient, ClientSecret: auth.IssuerSecret,
	}})
	for range 2 {
		if _, err := first(t, login, "b-1"); err != nil {
			t.Error(err)
		}
	}
	if issuer.Issued() != 3 {
		t.Errorf("%d tokens were issued, want 3: an expiring one was reused", issuer.Issued())
	}
}

// A token file is read at each login.
func TestTokensOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	login := kafkaLogin(t, config.SASL{Mechanism: "oauthbearer", OAuth: config.OAuth{TokenFile: file}})
	for _, token := range []string{"a.b.c", "d.e.f"} {
		rewrite(t, file, token+"\n")
		if message, err := first(t, login, "b-1"); message != "n,,\x01auth=Bearer "+token+"\x01\x01" || err != nil {
			t.Errorf("unexpected first message %q, error %v", message, err)
		}
	}
}

// The login at Amazon MSK is signed for the broker's region, with the credentials that AWS' own
// tools find.
func TestLoginAtMSK(t *testing.T) {
	auth.UseAWS(t, "")
	login := kafkaLogin(t, config.SASL{Mechanism: "aws-msk-iam"})
	const broker = "b-1.example.abc.c2.kafka.eu-west-1.amazonaws.com"
	message, err := first(t, login, broker)
	if err != nil {
		t.Fatal(err)
	}
	var signed map[string]string
	if err := json.Unmarshal([]byte(message), &signed); err != nil {
		t.Fatal(err)
	}
	if login.Name() != "AWS_MSK_IAM" || signed["host"] != broker || signed["action"] != "kafka-cluster:Connect" ||
		signed["x-amz-security-token"] != "session+token==" || len(signed["x-amz-signature"]) != 64 ||
		!strings.HasPrefix(signed["x-amz-credential"], "AKIDEXAMPLE/") || !strings.HasSuffix(signed["x-amz-credential"], "/eu-west-1/kafka-cluster/aws4_request") {
		t.Errorf("%s: unexpected message %s", login.Name(), message)
	}

	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	if _, err := first(t, kafkaLogin(t, config.SASL{Mechanism: "aws-msk-iam"}), broker); err == nil || !strings.HasPrefix(err.Error(), "kafka.sasl: AWS: ") {
		t.Errorf("without credentials: got error %v", err)
	}
}
