package auth

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// These are the credentials that AWS' own tools find in the environment of UseAWS.
const (
	awsKeyID   = "AKIDEXAMPLE"
	awsSecret  = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	awsSession = "session+token=="
)

// UseAWS makes AWS' own tools find credentials and a region in the environment, and nowhere else.
func UseAWS(t testing.TB, region string) {
	none := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": awsKeyID, "AWS_SECRET_ACCESS_KEY": awsSecret, "AWS_SESSION_TOKEN": awsSession, "AWS_REGION": region,
		"AWS_DEFAULT_REGION": "", "AWS_PROFILE": "", "AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
}

// ElastiCache checks logins as Amazon ElastiCache does, for a user with the credentials of UseAWS.
type ElastiCache struct {
	Cache, Region, User string
	Serverless          bool
}

// Verify returns why a login is refused at a moment, or nil. The signature is computed as the description of Signature
// Version 4 says, without the SDK.
func (e ElastiCache) Verify(user, token string, now time.Time) error {
	u, err := url.Parse("http://" + token)
	if err != nil {
		return err
	}
	given := u.Query()
	at, err := time.Parse("20060102T150405Z", given.Get("X-Amz-Date"))
	if err != nil {
		return err
	}
	resource := map[bool]string{true: "ServerlessCache"}[e.Serverless]
	scope := strings.Join([]string{at.Format("20060102"), e.Region, "elasticache", "aws4_request"}, "/")
	for what, pair := range map[string][2]string{
		"user": {user, e.User}, "User": {given.Get("User"), e.User}, "host": {u.Host, e.Cache}, "path": {u.Path, "/"}, "Action": {given.Get("Action"), "connect"},
		"ResourceType": {given.Get("ResourceType"), resource}, "credential": {given.Get("X-Amz-Credential"), awsKeyID + "/" + scope},
		"session": {given.Get("X-Amz-Security-Token"), awsSession}, "expiry": {given.Get("X-Amz-Expires"), "900"},
	} {
		if pair[0] != pair[1] {
			return fmt.Errorf("%s is %q, want %q", what, pair[0], pair[1])
		}
	}
	if age := now.Sub(at); age < -time.Minute || age > 15*time.Minute {
		return fmt.Errorf("signed %v ago", age)
	}
	given.Del("X-Amz-Signature")
	sum := func(text string) string { s := sha256.Sum256([]byte(text)); return hex.EncodeToString(s[:]) }
	request := strings.Join([]string{"GET", "/", strings.ReplaceAll(given.Encode(), "+", "%20"), "host:" + u.Host, "", "host", sum("")}, "\n")
	key := []byte("AWS4" + awsSecret)
	for _, part := range append(strings.Split(scope, "/"), strings.Join([]string{"AWS4-HMAC-SHA256", given.Get("X-Amz-Date"), scope, sum(request)}, "\n")) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	if signature := u.Query().Get("X-Amz-Signature"); signature != hex.EncodeToString(key) {
		return errors.New("the signature is " + cmp.Or(signature, "missing"))
	}
	return nil
}
