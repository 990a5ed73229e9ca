package materialize

import "testing"

// Events in the forms that other systems write are the same in lines of JSON and in a CSV.
func TestEventsAsTheyCome(t *testing.T) {
	for name, c := range map[string]struct{ stream, lines, csv, features, want string }{
		"times": {
			`timestamp: {path: at, layout: 02.01.2006 15:04:05, tz: Europe/Berlin}
    fields: {user: string, seen: {type: timestamp, unit: auto, tz: Asia/Shanghai}, opened: {type: timestamp, tz: America/New_York}}`,
			`{"id":1,"at":"31.01.2026 11:00:00","user":"u","seen":"1769853600","opened":"2026-01-31 05:00"}
{"id":2,"at":"25.10.2026 02:30:00","user":"u","seen":"2026-01-31 18:00:00","opened":"0001-01-01T00:00:00+01:00"}
`,
			`id,at,user,seen,opened
1,31.01.2026 11:00:00,u,1769853600,2026-01-31 05:00
2,25.10.2026 02:30:00,u,2026-01-31 18:00:00,0001-01-01T00:00:00+01:00
`,
			`
  seen: LAST(lifetime, s, seen, user)
  at: IDLE_SINCE(lifetime, s, user)
  opened: LAST(lifetime, s, opened, user)`,
			"id,at,opened,seen\n1,1769853600000,1769853600000,1769853600000\n2,1792888200000,1769853600000,1769853600000\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := load(t, "streams:\n  s:\n    topic: t\n    id: id\n    "+c.stream+"\nfeatures:"+c.features+"\n")
			for format, in := range map[string]string{"ndjson": c.lines, "csv": c.csv} {
				var columns []string
				for _, f := range r.Features {
					columns = append(columns, f.Name)
				}
				got, _, err := materialize(t, r, "s", format, in, columns...)
				if err != nil || got != c.want {
					t.Errorf("%s: %v\ngot\n%s\nwant\n%s", format, err, got, c.want)
				}
			}
		})
	}
}
