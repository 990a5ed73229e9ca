package textbook

import (
	"context"
	"net/netip"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Event is a transaction or a login.
type Event struct {
	Type       string  `json:"type"`
	Timestamp  int64   `json:"timestamp"` // in ms
	UserID     string  `json:"user_id"`
	DeviceID   string  `json:"device_id"`
	CardID     string  `json:"card_id"`
	MerchantID string  `json:"merchant_id"`
	IP         string  `json:"ip"`
	Amount     float64 `json:"amount"`
	Status     string  `json:"status"`
	Success    bool    `json:"success"`
}

const day = 24 * time.Hour

// apply adds an event's commands to the pipeline. Windows and tiles are those that `weir explain`
// states for the shipped definitions.
func apply(ctx context.Context, pipe redis.Pipeliner, e *Event) {
	switch e.Type {
	case "transaction":
		applyTransaction(ctx, pipe, e)
	case "login":
		applyLogin(ctx, pipe, e)
	}
}

func applyTransaction(ctx context.Context, pipe redis.Pipeliner, e *Event) {
	user, device := e.UserID, e.DeviceID

	t := e.tile("device_tx_7d", device, day, 7*day)
	pipe.Incr(ctx, t.key)
	t.expire(ctx, pipe)

	t = e.tile("user_amount_1d", user, time.Hour, day)
	pipe.IncrByFloat(ctx, t.key, e.Amount)
	t.expire(ctx, pipe)

	t = e.tile("user_tx_1h", user, time.Minute, time.Hour)
	pipe.Incr(ctx, t.key)
	t.expire(ctx, pipe)

	if e.Status == "approved" {
		t = e.tile("user_approved_amount_1d", user, time.Hour, day)
		pipe.IncrByFloat(ctx, t.key, e.Amount)
		t.expire(ctx, pipe)
	}

	t = e.tile("user_avg_amount_7d", user, day, 8*day) // read with a delay of a day
	pipe.HIncrByFloat(ctx, t.key, "sum", e.Amount)
	pipe.HIncrBy(ctx, t.key, "count", 1)
	t.expire(ctx, pipe)

	t = e.tile("user_max_amount_30d", user, day, 30*day)
	pipe.ZAddGT(ctx, t.key, redis.Z{Score: e.Amount, Member: "max"})
	t.expire(ctx, pipe)

	t = e.tile("card_merchants_7d", e.CardID, day, 7*day)
	pipe.SAdd(ctx, t.key, e.MerchantID)
	t.expire(ctx, pipe)

	pipe.Incr(ctx, "user_tx_lifetime:"+user)

	t = e.tile("user_device_tx_30d", user+":"+device, day, 30*day)
	pipe.Incr(ctx, t.key)
	t.expire(ctx, pipe)
}

func applyLogin(ctx context.Context, pipe redis.Pipeliner, e *Event) {
	t := e.tile("device_users_30d", e.DeviceID, day, 30*day)
	pipe.SAdd(ctx, t.key, e.UserID)
	t.expire(ctx, pipe)

	// The sliding window of the cookbooks: values scored by the time last seen.
	key := "user_devices_30d:" + e.UserID
	pipe.ZAddGT(ctx, key, redis.Z{Score: float64(e.Timestamp), Member: e.DeviceID})
	pipe.ZRemRangeByScore(ctx, key, "-inf", strconv.FormatInt(e.Timestamp-(30*day).Milliseconds(), 10))
	pipe.ExpireAt(ctx, key, time.UnixMilli(e.Timestamp).Add(30*day))

	if segment := segment(e.IP); segment != "" {
		t = e.tile("ipc_devices_7d", segment, day, 7*day)
		pipe.PFAdd(ctx, t.key, e.DeviceID)
		t.expire(ctx, pipe)
	}

	if !e.Success {
		t = e.tile("device_failed_logins_1h", e.DeviceID, time.Minute, time.Hour)
		pipe.Incr(ctx, t.key)
		t.expire(ctx, pipe)
	}
}

// tile is a key and the time after which it is no longer read.
type tile struct {
	key  string
	ends time.Time
}

// tile returns the tile of an event, with the key feature:entity:tile, kept for a window.
func (e *Event) tile(feature, entity string, width, window time.Duration) tile {
	n := e.Timestamp / width.Milliseconds()
	return tile{
		key:  feature + ":" + entity + ":" + strconv.FormatInt(n, 10),
		ends: time.UnixMilli((n + 1) * width.Milliseconds()).Add(window),
	}
}

func (t tile) expire(ctx context.Context, pipe redis.Pipeliner) { pipe.ExpireAt(ctx, t.key, t.ends) }

// segment returns the /24 network of an IPv4 address, empty if ip is none.
func segment(ip string) string {
	addr, err := netip.ParseAddr(ip)
	if err != nil || !addr.Is4() {
		return ""
	}
	prefix, err := addr.Prefix(24)
	if err != nil {
		return ""
	}
	return prefix.String()
}

// Transactions returns a user's user_tx_lifetime.
func Transactions(ctx context.Context, client redis.Cmdable, user string) (int64, error) {
	n, err := client.Get(ctx, "user_tx_lifetime:"+user).Int64()
	if err == redis.Nil {
		return 0, nil
	}
	return n, err
}
