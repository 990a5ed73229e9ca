package thin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"time"
)

// Cache is a cache of a cluster. It is safe for concurrent use.
type Cache struct {
	client *Client
	name   string
	id     int32

	asking sync.Mutex             // held while it is asked which node has which partition
	asked  atomic.Int64           // the client's changes when it was asked
	owner  atomic.Pointer[[]UUID] // by partition, the node that has its primary copy; nil if that is unknown
}

// Partitions is the number of partitions of a cache, Ignite's default.
const Partitions = 1024

// Cache returns a cache by its name.
func (c *Client) Cache(name string) *Cache { return &Cache{client: c, name: name, id: javaHash(name)} }

// javaHash is java.lang.String.hashCode of ASCII text.
func javaHash(text string) (h int32) {
	for i := range len(text) {
		h = 31*h + int32(text[i])
	}
	return h
}

// Partition returns the partition of a key, as Ignite's RendezvousAffinityFunction does.
func (u UUID) Partition() int {
	both := u.High ^ u.Low
	hash := uint32(both>>32) ^ uint32(both)
	return int((hash ^ hash>>16) % Partitions)
}

// The properties of a cache that Weir sets, and their values.
const (
	propertyName           = 0
	propertyMode           = 1
	propertyAtomicity      = 2
	propertyBackups        = 3
	propertyWriteSync      = 4
	propertyReadFromBackup = 6
	propertyRegion         = 100
	propertyLossPolicy     = 404

	partitioned   = 2
	transactional = 0
	fullSync      = 0
	readWriteSafe = 2
)

// Create makes the cache if it does not exist: transactional, with a number of backups, in a data region, or the
// default one for "". A write is confirmed once all copies have it. Of a partition that no node has in full any more,
// nothing is read or written (IsLost).
func (c *Cache) Create(ctx context.Context, backups int, region string) error {
	_, err := c.client.request(ctx, UUID{}, opGetOrCreateCache, func(e *encoder) {
		var properties encoder
		n := int16(0)
		property := func(code int16) *encoder {
			n++
			properties.short(code)
			return &properties
		}
		property(propertyName).string(c.name)
		property(propertyMode).int(partitioned)
		property(propertyAtomicity).int(transactional)
		property(propertyBackups).int(int32(backups))
		property(propertyWriteSync).int(fullSync)
		property(propertyReadFromBackup).bool(false)
		property(propertyLossPolicy).int(readWriteSafe)
		if region != "" {
			property(propertyRegion).string(region)
		}
		e.int(int32(len(properties.bytes)))
		e.short(n)
		e.bytes = append(e.bytes, properties.bytes...)
	})
	if err != nil {
		return err
	}
	return c.check(ctx)
}

// The errors about a cache that somebody else has made: transactions are none in it, a part of a partition would be taken for all of
// it, or the keys of a partition are elsewhere.
var (
	ErrNotTransactional = errors.New("the cache exists, and is not transactional and partitioned")
	ErrLossPolicy       = errors.New("the cache exists, and its partition loss policy is not READ_WRITE_SAFE")
	ErrAffinity         = fmt.Errorf("the cache exists, and does not have Ignite's own affinity with %d partitions", Partitions)
)

// check checks that a cache which may have existed has transactions, and its keys where Weir expects them.
func (c *Cache) check(ctx context.Context) error {
	if _, err := c.Backups(ctx); err != nil {
		return err
	}
	_, err := c.partitions(ctx)
	return err
}

// Backups returns how many copies the cache has of each value beside the first. It fails if the cache is not as Create makes it.
func (c *Cache) Backups(ctx context.Context) (int, error) {
	d, err := c.client.request(ctx, UUID{}, opConfiguration, func(e *encoder) { c.header(e, nil, 0) })
	if err != nil {
		return 0, err
	}
	d.int() // length
	atomicity, backups, mode := d.int(), d.int(), d.int()
	if d.err == nil && (atomicity != transactional || mode != partitioned) {
		return 0, ErrNotTransactional
	}
	d.bool()   // copies are made when read
	d.string() // data region
	d.bool()   // expires eagerly
	d.bool()   // statistics
	d.string() // group
	d.long()   // timeout of locks
	d.int()    // concurrent operations
	d.int()    // iterators
	d.string() // name
	d.bool()   // on the heap, too
	if policy := d.int(); d.err == nil && policy != readWriteSafe {
		return 0, ErrLossPolicy
	}
	return int(backups), d.err
}

// Durable reports whether nodes that are started again have the values that they had, on disk.
func (c *Cache) Durable(ctx context.Context) (bool, error) {
	d, err := c.client.request(ctx, UUID{}, opLogged, func(e *encoder) { e.string(c.name) })
	return err == nil && d.bool(), cmp.Or(err, d.err)
}

// Destroy removes the cache.
func (c *Cache) Destroy(ctx context.Context) error {
	_, err := c.client.request(ctx, UUID{}, opDestroyCache, func(e *encoder) { e.int(c.id) })
	return err
}

// IsLost reports whether an error is about a partition that no node has in full any more.
func IsLost(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && lost.MatchString(e.Message)
}

// lost finds the messages of Ignite about that, of which there are several, and no code.
var lost = regexp.MustCompile(`partition (data )?has been lost`)

// ownerOf returns the node with the primary copy of a partition, as far as is known. After a change of the topology one request asks,
// and others go on with what was known: any node can answer.
func (c *Cache) ownerOf(ctx context.Context, partition int) UUID {
	known := c.owner.Load()
	if changes := c.client.changes.Load(); (known == nil || changes != c.asked.Load()) && c.asking.TryLock() {
		defer c.asking.Unlock()
		if owner, err := c.partitions(ctx); err == nil {
			known = &owner
			c.owner.Store(known)
			c.asked.Store(changes)
		}
	}
	if known == nil {
		return UUID{}
	}
	return (*known)[partition]
}

// partitions asks which node has which partition.
func (c *Cache) partitions(ctx context.Context) ([]UUID, error) {
	d, err := c.client.request(ctx, UUID{}, opPartitions, func(e *encoder) {
		e.int(1)
		e.int(c.id)
	})
	if err != nil {
		return nil, err
	}
	return owners(&d)
}

// owners reads which node has which partition. None is known for a moment after the topology has changed.
func owners(d *decoder) ([]UUID, error) {
	owner, known := make([]UUID, Partitions), 0
	d.long() // version of the topology
	d.int()
	for range d.count(5) {
		applicable := d.bool()
		for range d.count(4) {
			d.int() // ID of the cache
			if applicable {
				for range d.count(8) { // keys with affinity fields, which UUIDs are not
					d.long()
				}
			}
		}
		if !applicable {
			return nil, cmp.Or(d.err, ErrAffinity)
		}
		for range d.count(21) {
			node := d.uuid()
			for range d.count(4) {
				if p := d.int(); p >= 0 && p < Partitions {
					owner[p] = node
				}
				known++
			}
		}
	}
	if d.err == nil && known != 0 && known != Partitions {
		d.err = ErrAffinity
	}
	return owner, d.err
}

// header writes what begins each request about the cache.
func (c *Cache) header(e *encoder, tx *Tx, keep time.Duration) {
	const expiry, inTx = 4, 2
	var flags byte
	if keep != 0 {
		flags |= expiry
	}
	if tx != nil {
		flags |= inTx
	}
	e.int(c.id)
	e.byte(flags)
	if keep != 0 {
		const unchanged = -2
		e.long(keep.Milliseconds())
		e.long(keep.Milliseconds())
		e.long(unchanged)
	}
	if tx != nil {
		e.int(tx.id)
	}
}

func (c *Cache) keys(e *encoder, keys []UUID) {
	e.int(int32(len(keys)))
	for _, k := range keys {
		e.uuid(k)
	}
}

// values reads a reply to getAll: the values of keys, nil for those without.
func values(d *decoder, keys []UUID) ([][]byte, error) {
	found := make(map[UUID][]byte, len(keys))
	for range d.count(18) {
		k := d.uuid()
		found[k] = d.byteArray()
	}
	list := make([][]byte, len(keys))
	for i, k := range keys {
		list[i] = found[k]
	}
	return list, d.err
}

// GetAll reads values of keys that one node has, or any: nil for those without. The values may be of different moments.
func (c *Cache) GetAll(ctx context.Context, keys []UUID) ([][]byte, error) {
	d, err := c.client.request(ctx, c.ownerOf(ctx, keys[0].Partition()), opGetAll, func(e *encoder) {
		c.header(e, nil, 0)
		c.keys(e, keys)
	})
	if err != nil {
		return nil, err
	}
	return values(&d, keys)
}

// Owner returns the node with the primary copy of a key, as far as is known.
func (c *Cache) Owner(ctx context.Context, key UUID) UUID { return c.ownerOf(ctx, key.Partition()) }

// Tx is a transaction, optimistic and serializable: it is not made if another one changes what it has read. It belongs to one
// goroutine.
type Tx struct {
	cache *Cache
	conn  *conn
	id    int32
}

// Begin begins a transaction about keys of the partition of a key, once fewer than maxTransactions are open. It must be
// ended; the server ends it after a time.
func (c *Cache) Begin(ctx context.Context, key UUID) (*Tx, error) {
	const optimistic, serializable = 0, 2
	to, err := c.client.to(ctx, c.ownerOf(ctx, key.Partition()))
	if err != nil {
		return nil, err
	}
	select {
	case to.transactions <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	tx := &Tx{cache: c, conn: to}
	d, err := tx.request(ctx, opTxStart, func(e *encoder) {
		e.byte(optimistic)
		e.byte(serializable)
		e.long(c.client.config.Request.Milliseconds())
		e.null() // no label
	})
	tx.id = d.int()
	if err == nil {
		err = d.err
	}
	if err != nil {
		<-to.transactions
		return nil, err
	}
	return tx, nil
}

func (t *Tx) request(ctx context.Context, op int16, body func(*encoder)) (decoder, error) {
	ctx, cancel := context.WithTimeout(ctx, t.cache.client.config.Request)
	defer cancel()
	return t.conn.request(ctx, op, body)
}

// GetAll reads values, nil for those that there are none of.
func (t *Tx) GetAll(ctx context.Context, keys []UUID) ([][]byte, error) {
	d, err := t.request(ctx, opGetAll, func(e *encoder) {
		t.cache.header(e, t, 0)
		t.cache.keys(e, keys)
	})
	if err != nil {
		return nil, err
	}
	return values(&d, keys)
}

// Entry is a key with its value.
type Entry struct {
	Key   UUID
	Value []byte
}

// PutAll writes values, which are kept for a time from now on, or forever for 0.
func (t *Tx) PutAll(ctx context.Context, entries []Entry, keep time.Duration) error {
	_, err := t.request(ctx, opPutAll, func(e *encoder) {
		if keep == 0 {
			keep = -time.Millisecond // eternal, in Ignite's protocol
		}
		t.cache.header(e, t, keep)
		e.int(int32(len(entries)))
		for _, entry := range entries {
			e.uuid(entry.Key)
			e.byteArray(entry.Value)
		}
	})
	return err
}

// End ends the transaction: all that it wrote is written, or nothing is. After a LostError either may be so if it commits.
func (t *Tx) End(ctx context.Context, commit bool) error {
	_, err := t.request(ctx, opTxEnd, func(e *encoder) {
		e.int(t.id)
		e.bool(commit)
	})
	<-t.conn.transactions
	return err
}

// Size returns how many values the cache has, without their copies.
func (c *Cache) Size(ctx context.Context) (int64, error) {
	const primary = 2
	d, err := c.client.request(ctx, UUID{}, opSize, func(e *encoder) {
		c.header(e, nil, 0)
		e.int(1)
		e.byte(primary)
	})
	if err != nil {
		return 0, err
	}
	return d.long(), d.err
}

// Scan visits the values of a partition, as they are when they are read. It ends when visit returns an error, with that, or the
// connection is lost: on another one the cursor's number may be that of another scan.
func (c *Cache) Scan(ctx context.Context, partition int, visit func(Entry) error) error {
	const page = 256
	d, on, err := c.client.begin(ctx, c.ownerOf(ctx, partition), opScan, func(e *encoder) {
		c.header(e, nil, 0)
		e.null() // no filter
		e.int(page)
		e.int(int32(partition))
		e.bool(false) // anywhere
	})
	cursor := d.long()
	for {
		if err != nil {
			return err
		}
		for range d.count(18) {
			entry := Entry{Key: d.uuid(), Value: d.byteArray()}
			if d.err != nil {
				break
			}
			if err := visit(entry); err != nil {
				return errors.Join(err, c.closeCursor(ctx, on, cursor))
			}
		}
		if more := d.bool(); d.err != nil || !more {
			return d.err
		}
		d, err = c.client.goOn(ctx, on, opScanPage, func(e *encoder) { e.long(cursor) })
	}
}

func (c *Cache) closeCursor(ctx context.Context, on *conn, cursor int64) error {
	_, err := c.client.goOn(ctx, on, opCloseResource, func(e *encoder) { e.long(cursor) })
	return err
}

// RemoveAll removes values.
func (t *Tx) RemoveAll(ctx context.Context, keys []UUID) error {
	_, err := t.request(ctx, opRemoveKeys, func(e *encoder) {
		t.cache.header(e, t, 0)
		t.cache.keys(e, keys)
	})
	return err
}
