package blackbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

// Each value of a training set is compared, and what it says of its quality.
func TestTrained(t *testing.T) {
	r := defined.Registry(t, `
streams: {login: {topic: logins, timestamp: at, fields: {user: string, device: string, place: location}}}
features:
  count: COUNT(1h, login, user)
  device: LAST(1h, login, device, user)
  place: LAST(1h, login, place, user)
  devices: COUNT_DISTINCT(1h, login, user, device)
  by_device: COUNT(1h, login, user, per=device)
  list: LAST_K(1h, login, device, user, k=2)
`)
	loop := model.New(r)
	for i, place := range []string{`{"lat":1.5,"lon":2}`, "null"} {
		value := fmt.Appendf(nil, `{"at": %d, "user": "a|%d", "device": "", "place": %s}`, 1000+i, i, place)
		if err := loop.Apply(record.Record{Partition: state.Partition{Topic: "logins"}, Offset: int64(i), Timestamp: int64(1000 + i), Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	const head = "user,count,count_status,count_capped,count_error,device,device_status,device_capped,device_error," +
		"place,place_status,place_capped,place_error,devices,devices_status,devices_capped,devices_error,by_device,by_device_status,by_device_capped,by_device_error\n"
	first := `"a|0",1,PRESENT,false,,"",PRESENT,false,,"1.5,2",PRESENT,false,,1,PRESENT,false,,"{"""":1}",PRESENT,false,` + "\n"
	second := `"a|1",1,PRESENT,false,,"",PRESENT,false,,,NOT_FOUND,false,,1,PRESENT,false,,"{"""":1}",PRESENT,false,` + "\n"
	for _, c := range []struct {
		set   string
		err   error
		wrong int
	}{
		{set: head + first + second},
		{set: head + strings.Replace(first, ",1,", ",2,", 1) + second, wrong: 1},
		{set: head + first + strings.ReplaceAll(second, "PRESENT", "INCOMPLETE"), wrong: 4},
		{set: head + first + strings.ReplaceAll(second, "false", "true"), wrong: 5},
		{set: strings.Replace(head, "devices,", "others,", 1) + first + second, wrong: 2},
		{set: head + first, wrong: 1},
		{err: errors.New("no broker"), wrong: 1},
	} {
		comparison := Comparison{T: &quiet{TB: t}, Model: loop}
		comparison.Trained(r, 2000, func(names []string, spine []byte) ([]byte, error) {
			lines := slices.Collect(strings.Lines(string(spine)))
			if want := []string{"user,at\n", "\"a|0\",2000\n", "\"a|1\",2000\n"}; !cmp.Equal(lines, want) {
				t.Errorf("the spine is %q, want %q", lines, want)
			}
			if want := []string{"by_device", "count", "device", "devices", "place"}; !cmp.Equal(names, want) {
				t.Errorf("the features are %q, want %q", names, want)
			}
			return []byte(c.set), c.err
		})
		if comparison.Wrong != c.wrong {
			t.Errorf("%d values differ, want %d, in\n%s", comparison.Wrong, c.wrong, c.set)
		}
	}
}
