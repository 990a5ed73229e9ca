package config

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit/auth"
)

// A token for ElastiCache is signed again at each login, for the user, the cache and the region, and
// is good for 15 minutes from then on.
func TestTokensForElastiCache(t *testing.T) {
	auth.UseAWS(t, "eu-west-1")
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for _, c := range []struct {
		settings ElastiCache
		region   string
	}{
		{ElastiCache{Cache: "payments"}, "eu-west-1"},
		{ElastiCache{Cache: "payments", Region: "us-east-1", Serverless: true}, "us-east-1"},
	} {
		cache := auth.ElastiCache{Cache: c.settings.Cache, Region: c.region, User: "weir", Serverless: c.settings.Serverless}
		at := now
		login := c.settings.login("weir", func() time.Time { return at })
		user, early, err := login(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := cache.Verify(user, early, now.Add(14*time.Minute)); err != nil {
			t.Error("a token is refused after 14 minutes:", err)
		}
		at = now.Add(16 * time.Minute)
		if cache.Verify(user, early, at) == nil {
			t.Error("a token is accepted after 16 minutes")
		}
		user, late, err := login(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := cache.Verify(user, late, at); err != nil {
			t.Error("a later token is refused:", err)
		}
		if cache.Verify(user, strings.Replace(late, "User=weir", "User=root", 1), at) == nil || cache.Verify("root", late, at) == nil {
			t.Error("a token is accepted for another user")
		}
	}
}

func TestElastiCacheWithoutAWS(t *testing.T) {
	auth.UseAWS(t, "")
	login := ElastiCache{Cache: "payments"}.login("weir", time.Now)
	if _, _, err := login(t.Context()); err == nil || err.Error() != "redis.elasticache.region: neither it nor AWS_REGION names the region of the cache" {
		t.Error("without a region: got error", err)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	login = ElastiCache{Cache: "payments", Region: "eu-west-1"}.login("weir", time.Now)
	if _, _, err := login(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "redis.elasticache: AWS: ") {
		t.Error("without credentials: got error", err)
	}
}
