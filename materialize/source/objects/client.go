package objects

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const scheme = "s3://"

// Named says whether a name is that of an object, of a folder of objects, or a pattern of such names.
func Named(name string) bool { return strings.HasPrefix(name, scheme) }

// split returns the bucket and the key of a name. The key may be empty.
func split(name string) (bucket, key string, err error) {
	bucket, key, _ = strings.Cut(strings.TrimPrefix(name, scheme), "/")
	if bucket == "" || strings.ContainsAny(bucket, wild) {
		return "", "", fmt.Errorf("%s: expected %sBUCKET/KEY; only the key may be a pattern", name, scheme)
	}
	return bucket, key, nil
}

// store is a client, and its credentials.
type store struct {
	*minio.Core
	identity aws.CredentialsProvider
}

// load makes the client of the process.
var load = sync.OnceValues(loadStore)

// amazon is where Amazon's store is; the client knows the endpoints of its regions.
const amazon = "https://s3.amazonaws.com"

// loadStore makes a client from what AWS' own tools are configured by: environment variables, files, and
// roles of the pod or of the machine.
func loadStore() (*store, error) {
	c, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		return nil, fmt.Errorf("the configuration of AWS: %w", err)
	}
	endpoint := endpointOf(&c)
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("the endpoint %q is not one such as http://minio:9000", endpoint)
	}
	if c.Region == "" && endpoint != amazon {
		c.Region = "us-east-1" // other stores have no regions; the client asks Amazon for that of a bucket
	}
	options := &minio.Options{
		Secure: u.Scheme == "https", Region: c.Region, MaxRetries: c.RetryMaxAttempts, Creds: credentials.New(provider{c.Credentials}),
	}
	if client, ok := c.HTTPClient.(*awshttp.BuildableClient); ok { // it trusts AWS_CA_BUNDLE
		transport := client.GetTransport()
		transport.DisableCompression = true // an object is read as it is stored, whatever its encoding
		transport.ResponseHeaderTimeout = time.Minute
		options.Transport = transport
	}
	client, err := minio.NewCore(u.Host, options)
	if err != nil {
		return nil, fmt.Errorf("the endpoint %q: %w", endpoint, err)
	}
	return &store{client, c.Credentials}, nil
}

// endpointOf is the endpoint of the store.
func endpointOf(c *aws.Config) string {
	if ignored := os.Getenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"); !strings.EqualFold(ignored, "true") {
		for _, from := range c.ConfigSources {
			if services, ok := from.(interface {
				GetServiceBaseEndpoint(ctx context.Context, service string) (string, bool, error)
			}); ok {
				if endpoint, found, err := services.GetServiceBaseEndpoint(context.Background(), "S3"); found && err == nil {
					return endpoint
				}
			}
		}
		if c.BaseEndpoint != nil {
			return *c.BaseEndpoint
		}
	}
	return amazon
}

// connect returns the client, which has credentials, and the bucket and the key of a name. The error names it.
func connect(ctx context.Context, name string) (s *store, bucket, key string, err error) {
	if bucket, key, err = split(name); err != nil {
		return nil, "", "", err
	}
	if s, err = load(); err == nil {
		if _, failure := s.identity.Retrieve(ctx); failure != nil {
			err = fmt.Errorf("no AWS credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE or a role: %w", failure)
		}
	}
	if err != nil {
		return nil, "", "", fmt.Errorf("%s: %w", name, err)
	}
	return s, bucket, key, nil
}

// provider gives the client the credentials of AWS' library, which keeps them until they are about to expire.
type provider struct{ from aws.CredentialsProvider }

// IsExpired makes the client ask each time.
func (provider) IsExpired() bool { return true }

// Retrieve implements credentials.Provider.
func (p provider) Retrieve() (credentials.Value, error) { return p.RetrieveWithCredContext(nil) }

// RetrieveWithCredContext implements credentials.Provider.
func (p provider) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	found, err := p.from.Retrieve(context.Background())
	return credentials.Value{
		AccessKeyID: found.AccessKeyID, SecretAccessKey: found.SecretAccessKey, SessionToken: found.SessionToken, SignerType: credentials.SignatureV4,
	}, err
}
