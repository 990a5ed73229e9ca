package config

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// azureScope is the scope of tokens: Azure Managed Redis and Azure Cache for Redis.
const azureScope = "https://redis.azure.com/.default"

// azureReserve is how long before its expiry a token is replaced: Microsoft asks for 3 minutes, and
// the library gives a new one from 5 minutes before.
const azureReserve = 4 * time.Minute

// Token is a password of Redis that expires.
type Token struct {
	Password string
	Expires  time.Time
	// Replace is when to ask for the next one.
	Replace time.Time
}

// Tokens returns the source of tokens for logins at Redis, nil if redis.azure names no identity. It returns the same
// token until the next one is available. The error names the setting that cannot be used.
func (r *Redis) Tokens() (func(context.Context) (Token, error), error) {
	if r.Azure.Identity == "" {
		return nil, nil
	}
	return r.Azure.tokens(azcore.ClientOptions{})
}

func (a Azure) tokens(options azcore.ClientOptions) (func(context.Context) (Token, error), error) {
	credential, err := a.credential(options)
	if err != nil {
		return nil, fmt.Errorf("redis.azure: %w", err)
	}
	return func(ctx context.Context) (Token, error) {
		ctx, cancel := context.WithTimeout(ctx, tokenTime)
		defer cancel()
		got, err := credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{azureScope}})
		if err != nil {
			return Token{}, fmt.Errorf("redis.azure: no token of Microsoft Entra: %w", brief(err))
		}
		token := Token{Password: got.Token, Expires: got.ExpiresOn, Replace: got.ExpiresOn.Add(-azureReserve)}
		if !got.RefreshOn.IsZero() {
			token.Replace = got.RefreshOn
		}
		return token, nil
	}, nil
}

func (a Azure) credential(options azcore.ClientOptions) (azcore.TokenCredential, error) {
	if a.Identity == "workload" {
		return azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: options, ClientID: a.ClientID})
	}
	managed := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: options}
	if a.ClientID != "" {
		managed.ID = azidentity.ClientID(a.ClientID)
	}
	return azidentity.NewManagedIdentityCredential(managed)
}

// brief returns the error without the response, which the library's text quotes in full.
func brief(err error) error {
	var refusal *azidentity.AuthenticationFailedError
	if errors.As(err, &refusal) && refusal.RawResponse != nil {
		return errors.New(refusal.RawResponse.Status)
	}
	return err
}
