package defined

import (
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

// Seal is that of a namespace in tests.
func Seal() state.Seal { return state.NewSeal([]byte("a secret of a test")) }

// Copy gives a record the headers of a copy, sealed with Seal.
func Copy(rec *record.Record, says string) {
	headers := []record.Header{{Key: record.CopyHeader, Value: []byte(says)}}
	rec.Headers = record.HeaderList(append(headers, record.SealOf(Seal(), rec.Partition.Topic, rec.Key, rec.Value, headers, 1)))
}
