package record_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-stream/weir/internal/testkit/defined"
)

// One decoder reads records with members in different orders and spellings, with missing, unknown and repeated members.
func TestMembersInAnyOrder(t *testing.T) {
	d := defined.Registry(t, decodeDefinitions).NewDecoder()
	members := []string{`"str":"a"`, `"int":1`, `"float":1.5`, `"floa\u0074" : 1.5`, `"bool":true`, `"x":{"int":9}`, `"e":{"a":{"c":1,"b":"deep"},"t":-1}`, `"y":0`}
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		list := slices.Clone(members[:random.IntN(len(members)+1)])
		if len(list) > 0 && random.IntN(2) == 0 {
			list = append(list, list[random.IntN(len(list))], `"int":2`)
		}
		got, err := decodeOne(t, d, strings.Join(list, ","))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"must": "string none"}
		for _, m := range list {
			switch m {
			case `"str":"a"`:
				want["str"], want["must"] = "string a", "string a"
			case `"int":1`:
				want["int"] = "int 1"
			case `"int":2`:
				want["int"] = "int 2"
			case `"float":1.5`, `"floa\u0074" : 1.5`:
				want["float"] = "float 1.5"
			case `"bool":true`:
				want["bool"] = "bool true"
			case `"e":{"a":{"c":1,"b":"deep"},"t":-1}`:
				want["deep"] = "string deep"
			}
		}
		for i, name := range []string{"str", "int", "float", "dec", "bool", "at", "loc", "deep", "must"} {
			if show(got[i]) != cmp.Or(want[name], "null") {
				t.Fatalf("{%s}: %s is %s, want %s", strings.Join(list, ","), name, show(got[i]), cmp.Or(want[name], "null"))
			}
		}
	}
}
