package kafkatest

import (
	"fmt"
	"os"
	"path/filepath"
)

// LogSize returns the size in bytes of a partition's log. The broker must be a process of this
// machine and have written a single segment.
func (b *Broker) LogSize(topic string, partition int32) int64 {
	b.t.Helper()
	info, err := os.Stat(b.segment(topic, partition))
	if err != nil {
		b.t.Fatal(err)
	}
	return info.Size()
}

// TruncateLog truncates the log of a partition to size bytes while the broker is killed, as a power
// loss or the election of a replica without the tail does.
func (b *Broker) TruncateLog(topic string, partition int32, size int64) {
	b.t.Helper()
	if err := os.Truncate(b.segment(topic, partition), size); err != nil {
		b.t.Fatal(err)
	}
}

// segment returns the file of a partition's first records.
func (b *Broker) segment(topic string, partition int32) string {
	b.t.Helper()
	if b.data == "" {
		b.t.Fatal("the broker's files are not of this machine: set WEIR_TEST_SOURCE=local")
	}
	return filepath.Join(b.data, fmt.Sprintf("%s-%d", topic, partition), fmt.Sprintf("%020d.log", 0))
}
