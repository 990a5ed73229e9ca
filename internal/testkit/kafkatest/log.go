package kafkatest

import (
	"fmt"
	"os"
	"path/filepath"
)

// LogSize is how many bytes the log of a partition has, of a broker that is a process of
// this machine and has written one segment.
func (b *Broker) LogSize(topic string, partition int32) int64 {
	b.t.Helper()
	info, err := os.Stat(b.segment(topic, partition))
	if err != nil {
		b.t.Fatal(err)
	}
	return info.Size()
}

// TruncateLog cuts the log of a partition to so many bytes, while the broker is killed: as a
// machine does that loses its power, or an election of a replica that lacks the tail.
func (b *Broker) TruncateLog(topic string, partition int32, size int64) {
	b.t.Helper()
	if err := os.Truncate(b.segment(topic, partition), size); err != nil {
		b.t.Fatal(err)
	}
}

// segment is the file of the first records of a partition.
func (b *Broker) segment(topic string, partition int32) string {
	b.t.Helper()
	if b.data == "" {
		b.t.Fatal("the broker's files are not of this machine: set WEIR_TEST_SOURCE=local")
	}
	return filepath.Join(b.data, fmt.Sprintf("%s-%d", topic, partition), fmt.Sprintf("%020d.log", 0))
}
