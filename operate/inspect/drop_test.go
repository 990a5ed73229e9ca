package inspect

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// shown is the output of weir state for u1.
func shown(t *testing.T, s *redisstore.Store, r *features.Registry) string {
	t.Helper()
	keys, err := Read(t.Context(), s, r, map[string]string{"user": "u1"}, []string{"spent_1d"})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	keys.WriteText(&text)
	return text.String()
}

// Damage is shown with the byte where it begins; a dry run says what would be lost and changes nothing; a drop makes
// the entity readable and states what is lost.
func TestDrop(t *testing.T) {
	client, namespace := redistest.Shared(t).Client(t), testkit.Namespace(t)
	s, r := redisstore.New(client, namespace, 2), registry(t, definitions)
	fill(t, s, r, events...)
	user := map[string]string{"user": "u1"}
	drop := func(scope Scope) ([]Dropped, string) {
		t.Helper()
		scope.Keys = user
		dropped, err := Drop(t.Context(), s, r, scope)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		WriteDropped(&text, dropped, scope)
		return dropped, text.String()
	}
	if _, text := drop(Scope{}); text != "nothing is damaged; --all also drops what can be read\n" {
		t.Errorf("dropping sound state: got %s", text)
	}
	keys, err := Read(t.Context(), s, r, user, []string{"spent_1d"})
	if err != nil {
		t.Fatal(err)
	}
	key, size := keys[0].Key, keys[0].Bytes
	sound := client.Get(t.Context(), key).Val()
	for name, test := range map[string]struct {
		damage        func() error
		wrong         string
		bytes, kept   int
		stillReadable bool
	}{
		"a tail": {func() error { return client.Set(t.Context(), key, sound+"\x01\x02\x03\x7f", 0).Err() },
			fmt.Sprintf("the state is damaged: the section at byte %d reaches", size), size + 4, size, true},
		"another type": {func() error {
			return errors.Join(client.Del(t.Context(), key).Err(), client.SAdd(t.Context(), key, 1).Err())
		},
			"it is a set, which Weir has not written", 0, 0, false},
	} {
		if err := test.damage(); err != nil {
			t.Fatal(err)
		}
		if text := shown(t, s, r); !strings.Contains(text, "  damaged   "+test.wrong) ||
			strings.Contains(text, "spent_1d") != test.stillReadable {
			t.Errorf("%s is not shown as damage of this key:\n%s", name, text)
		}
		dry, text := drop(Scope{DryRun: true})
		if len(dry) != 1 || dry[0].Key != key || dry[0].Bytes != test.bytes || !strings.HasPrefix(dry[0].Damage, test.wrong) {
			t.Errorf("%s: unexpected dry run %+v", name, dry)
		}
		const since = "  spent_1d would be complete since 2025-01-01T12:00:00.001Z\n"
		if !strings.HasPrefix(text, "user=u1\n  key       "+key+"\n  damaged   "+test.wrong) || !strings.Contains(text, "\n  to drop   all but ") || !strings.Contains(text, since) {
			t.Errorf("%s: unexpected output of the dry run:\n%s", name, text)
		}
		if text := shown(t, s, r); !strings.Contains(text, "damaged") {
			t.Errorf("the dry run has changed the state:\n%s", text)
		}
		dropped, text := drop(Scope{})
		if len(dropped) != 1 || !maps.Equal(dropped[0].Lost, dry[0].Lost) || !strings.Contains(text, "  dropped   all but ") ||
			!strings.Contains(text, "  spent_1d complete since 2025-01-01T12:00:00.001Z\n") {
			t.Errorf("%s: unexpected drop %+v\n%s", name, dropped, text)
		}
		if _, of := dropped[0].Lost["shop_pays"]; of {
			t.Errorf("%s: a feature of another key is reported as lost: %v", name, dropped[0].Lost)
		}
		text = shown(t, s, r)
		if strings.Contains(text, "damaged") || !strings.Contains(text, "  lost      what records up to 2025-01-01T12:00:00Z changed in all series\n") {
			t.Errorf("%s: after the drop the loss is not shown, or the damage still is:\n%s", name, text)
		}
	}
	if dropped, _ := drop(Scope{All: true, Features: []string{"spent_1d"}}); len(dropped) != 1 || dropped[0].Kept != 0 || dropped[0].Damage != "" {
		t.Errorf("dropping everything: got %+v", dropped)
	}
	user = map[string]string{"user": "nobody"}
	if _, text := drop(Scope{All: true}); text != "there is nothing to drop\n" {
		t.Errorf("dropping everything of nothing: got %s", text)
	}
	_, err = Drop(t.Context(), s, r, Scope{Keys: map[string]string{"usr": "u1"}})
	if want := "no state is kept by usr with the keys given; it is kept by shop; shop,user; user"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
