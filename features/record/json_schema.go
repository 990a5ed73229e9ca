package record

// jsonSchemaSpec is the row of the format whose records are JSON objects after the ID of their
// schema. JSON values have types of their own, so the schema is not needed.
var jsonSchemaSpec = FormatSpec{
	Name: "json_schema", Describes: "one JSON object after the ID of its schema",
	New: func(Options) (Format, error) { return jsonSchemaFormat{}, nil },
}

type jsonSchemaFormat struct{ jsonFormat }

func (jsonSchemaFormat) String() string { return "json_schema" }

func (jsonSchemaFormat) NewScanner(tree *Node) Scanner {
	return &jsonSchemaScanner{jsonScanner: jsonScanner{tree: tree}}
}

type jsonSchemaScanner struct {
	jsonScanner
	body Record
}

// Scan finds the values of the tree in the object after the ID.
func (s *jsonSchemaScanner) Scan(rec *Record, values []Datum) (err error) {
	if _, s.body.Value, err = framed(rec.Value); err != nil {
		return err
	}
	return s.jsonScanner.Scan(&s.body, values)
}
