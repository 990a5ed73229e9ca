package diff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-stream/weir/state"
)

// The memory of a change is the memory per entity times the entities in Redis. If their number is not known, it says
// why.
func TestMemory(t *testing.T) {
	old := load(t, before)
	wanted := load(t, strings.Replace(before, "features:\n", `features:
  more: COUNT(7d, pay, user)
  pairs: COUNT(7d, pay, user, device)
  devices: COUNT(7d, pay, device)
`, 1))
	groups := map[string]int64{}
	found := &state.KeyCount{Groups: groups, Keys: 5000, Looked: 1000, Embeds: true}
	for _, s := range wanted.Series {
		switch strings.Join(s.By, "+") {
		case "user":
			groups[s.Group] = 1 << 20
		case "user+device":
			groups[s.Group] = 7
		}
	}
	m := MemoryOf(old, wanted, "Redis", found)
	costs := Of(old, wanted).Cost
	grows := func(what string) (bytes int64) {
		for _, c := range costs {
			if c.What == what {
				bytes = c.After - c.Before
			}
		}
		return bytes
	}
	if least, most := grows("bytes of an entity user, met once"), grows("bytes of an entity user, full"); least == 0 || m.Least != least<<20 || m.Most != most<<20 {
		t.Errorf("%d to %d bytes for a user: got %+v, want them times 2^20", least, most, m)
	}
	var text strings.Builder
	(&Difference{Memory: m}).WriteText(&text)
	want := fmt.Sprintf(`memory, entities estimated from 1000 of the 5000 keys in Redis; bytes estimated as above
  device: not known: Redis has none yet
  user: %[1]s for 1048576 entities
  user+device: not known: 7 have keys of their own, the others are in the keys of user
  in all: %[1]s
`, growth(m.Least, m.Most))
	if text.String() != want {
		t.Errorf("got  %s\nwant %s", text.String(), want)
	}
	back := MemoryOf(wanted, old, "Redis", found)
	if back.Most != -m.Least || back.Least != -m.Most {
		t.Errorf("the opposite change takes %+v, want the opposite of %+v", back, m)
	}
	found.Embeds = false
	text.Reset()
	(&Difference{Memory: MemoryOf(old, wanted, "Ignite", found)}).WriteText(&text)
	for _, want := range []string{"of the 5000 keys in Ignite;", "  device: not known: Ignite has none yet\n", " for 7 entities\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("got  %s\nwant %s", text.String(), want)
		}
	}
	text.Reset()
	none := MemoryOf(old, old, "Redis", &state.KeyCount{Keys: 7, Looked: 7})
	(&Difference{Memory: none}).WriteText(&text)
	if text.String() != "memory: nothing changes\n" {
		t.Errorf("without a change: output\n%s", text.String())
	}
}
