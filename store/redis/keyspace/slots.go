package keyspace

import (
	"strconv"
	"sync"
)

// A shard's tag is chosen such that its slot lies in the middle of the shard's part of a cluster's slots: shard i of n
// is at slot (2i+1)·16384/2n. So any number of shards spreads evenly over masters with equal ranges of slots. Tags of
// the shard's number alone fall at random: of 64 on 11 masters, the fullest had 9 instead of 5.8.

// Slots is the number of slots of any cluster, and so the most shards.
const Slots = 16384

// ParseShards reads a number of shards; 0 if there cannot be so many.
func ParseShards(text string) int {
	if shards, err := strconv.Atoi(text); err == nil && shards >= 1 && shards <= Slots {
		return shards
	}
	return 0
}

// SlotOf returns the slot of a hash tag: CRC-16/XMODEM.
func SlotOf(tag string) int { return int(crc16(0, tag)) % Slots }

func crc16(crc uint16, text string) uint16 {
	for i := range len(text) {
		crc ^= uint16(text[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// suffixDigits are the digits of a tag's suffix, which has suffixLength of them. They are letters, because the suffix
// follows a number.
const (
	suffixDigits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	suffixLength = 3
)

// suffixes maps each slot to the first suffix, ordered by digits, that is in it alone. The CRC is linear: with any text
// before the suffix, choosing the suffix reaches every slot.
var suffixes = sync.OnceValue(func() *[Slots]string {
	var first [Slots]string
	var text [suffixLength]byte
	for n, left := 0, Slots; left > 0; n++ {
		for i, rest := suffixLength-1, n; i >= 0; i, rest = i-1, rest/len(suffixDigits) {
			text[i] = suffixDigits[rest%len(suffixDigits)]
		}
		if slot := SlotOf(string(text[:])); first[slot] == "" {
			first[slot] = string(text[:])
			left--
		}
	}
	return &first
})

// ShardTag returns the hash tag that all keys of a shard begin with, such as {weir:12kfa}.
func ShardTag(namespace string, shard, shards int) string {
	before := namespace + ":" + strconv.Itoa(shard)
	slot := (2*shard + 1) * Slots / (2 * shards)
	zeros := string(make([]byte, suffixLength))
	suffix := suffixes()[slot^SlotOf(before+zeros)]
	return "{" + before + suffix + "}"
}
