package lag

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Total sums up the lags and the losses.
func Total(partitions []PartitionLag) (lag, lost int64) {
	for _, p := range partitions {
		lag += p.Lag
		lost += p.Lost
	}
	return lag, lost
}

// Unknown counts the partitions whose lag is unknown.
func Unknown(partitions []PartitionLag) (n int) {
	for i := range partitions {
		if partitions[i].Error != "" {
			n++
		}
	}
	return n
}

// maxShards is how many shards that are behind are named.
const maxShards = 8

// Report is how far partitions are applied, and new features filled.
type Report struct {
	Partitions []PartitionLag
	Fills      []Fill
}

// WriteText writes a table, and below it the shards that are behind and the fills under way.
func (r Report) WriteText(text *strings.Builder) {
	partitions, fills := r.Partitions, r.Fills
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TOPIC\tPARTITION\tSTART\tEND\tAPPLIED\tFURTHEST\tCOMMITTED\tLAG\tOPEN")
	for _, p := range partitions {
		of := func(log int64) string { // what the log decides
			if p.Error != "" {
				return "?"
			}
			return strconv.FormatInt(log, 10)
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Topic, p.Partition, of(p.Start), of(p.End),
			offset(p.Applied), offset(p.Furthest), offset(p.Committed), of(p.Lag), of(p.Open))
	}
	_ = table.Flush() // a Builder takes all
	text.WriteByte('\n')
	for _, p := range partitions {
		if p.Error != "" {
			fmt.Fprintf(text, "%s/%d: it is unknown what the log holds: %s\n", p.Topic, p.Partition, p.Error)
		}
		if p.OtherLog {
			fmt.Fprintf(text, "%s/%d: what was applied is of another log: the topic was made again, or the brokers are of another cluster\n", p.Topic, p.Partition)
		}
		if p.Lost > 0 {
			fmt.Fprintf(text, "%s/%d: %d offsets were removed from the log before all shards had applied them\n", p.Topic, p.Partition, p.Lost)
		}
		if p.Open > 0 {
			fmt.Fprintf(text, "%s/%d: a transaction is open from offset %d on%s; nothing after it can be read until it ends\n",
				p.Topic, p.Partition, p.Stable, since(p.OpenSince))
		}
		if len(p.Behind) == 0 {
			continue
		}
		fmt.Fprintf(text, "%s/%d: shards behind:", p.Topic, p.Partition)
		for i, s := range p.Behind {
			if i == maxShards {
				fmt.Fprintf(text, " and %d more", len(p.Behind)-i)
				break
			}
			fmt.Fprintf(text, "%s %d at %s", map[bool]string{false: "", true: ","}[i > 0], s.Shard, offset(s.Applied))
		}
		text.WriteByte('\n')
	}
	lag, _ := Total(partitions)
	fmt.Fprintf(text, "total lag %d", lag)
	if n := Unknown(partitions); n > 0 {
		fmt.Fprintf(text, ", without the partitions whose logs are unknown: %d", n)
	}
	text.WriteByte('\n')
	writeFills(text, fills)
}

func since(at *time.Time) string {
	if at == nil {
		return ""
	}
	return ", since " + at.Format(time.RFC3339)
}

func offset(o *int64) string {
	if o == nil {
		return "-"
	}
	return strconv.FormatInt(*o, 10)
}

// MarshalJSON makes an object of the partitions, their lag together, and the fills.
func (r Report) MarshalJSON() ([]byte, error) {
	lag, lost := Total(r.Partitions)
	return json.Marshal(struct {
		Partitions []PartitionLag `json:"partitions"`
		Lag        int64          `json:"lag"`
		Lost       int64          `json:"lost"`
		Backfills  []Fill         `json:"backfills"`
	}{append([]PartitionLag{}, r.Partitions...), lag, lost, append([]Fill{}, r.Fills...)})
}
