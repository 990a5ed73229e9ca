package config

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/twmb/franz-go/pkg/sasl/aws"
)

// awsIdentity returns the source of each login's credentials and their region, found like AWS' own
// tools do: the environment, a role of the pod or of the machine, a profile. The SDK replaces
// credentials that are about to expire. The error begins with the key of the settings.
func awsIdentity(key string) func(context.Context) (found sdk.Credentials, region string, err error) {
	load := sync.OnceValues(func() (sdk.Config, error) { return awsconfig.LoadDefaultConfig(context.Background()) })
	return func(ctx context.Context) (found sdk.Credentials, region string, err error) {
		c, err := load()
		if err == nil {
			found, err = c.Credentials.Retrieve(ctx)
		}
		if err != nil {
			return found, "", fmt.Errorf("%s: AWS: %w", key, err)
		}
		return found, c.Region, nil
	}
}

// mskLogin returns the source of each login's credentials at Amazon MSK.
func mskLogin() func(context.Context) (aws.Auth, error) {
	identity := awsIdentity("kafka.sasl")
	return func(ctx context.Context) (aws.Auth, error) {
		found, _, err := identity(ctx)
		return aws.Auth{AccessKey: found.AccessKeyID, SecretKey: found.SecretAccessKey, SessionToken: found.SessionToken, UserAgent: "weir"}, err
	}
}

// elastiCacheTokenLife is how long Amazon ElastiCache accepts a token for a login.
const elastiCacheTokenLife = 15 * time.Minute

// login returns the source of a user's logins at Amazon ElastiCache. The password is a token: the
// presigned request of a connection, as
// https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/auth-iam.html describes it. It is signed
// again at each login, which costs less than keeping one, so none expires before it is used.
func (e ElastiCache) login(user string, now func() time.Time) func(context.Context) (name, token string, err error) {
	identity, signer := awsIdentity("redis.elasticache"), v4.NewSigner()
	query := url.Values{"Action": {"connect"}, "User": {user}, "X-Amz-Expires": {strconv.Itoa(int(elastiCacheTokenLife.Seconds()))}}
	if e.Serverless {
		query.Set("ResourceType", "ServerlessCache")
	}
	connect := url.URL{Scheme: "http", Host: e.Cache, Path: "/", RawQuery: query.Encode()}
	nothing := sha256.Sum256(nil) // the hash of the request's empty body
	return func(ctx context.Context) (string, string, error) {
		found, region, err := identity(ctx)
		if err != nil {
			return "", "", err
		}
		if e.Region != "" {
			region = e.Region
		}
		if region == "" {
			return "", "", errors.New("redis.elasticache.region: neither it nor AWS_REGION names the region of the cache")
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, connect.String(), nil)
		if err != nil {
			return "", "", fmt.Errorf("redis.elasticache.cache: %w", err)
		}
		signed, _, err := signer.PresignHTTP(ctx, found, request, hex.EncodeToString(nothing[:]), "elasticache", region, now())
		if err != nil {
			return "", "", fmt.Errorf("redis.elasticache: AWS: %w", err)
		}
		return user, strings.TrimPrefix(signed, "http://"), nil
	}
}
