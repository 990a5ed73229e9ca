package record

// jsonSchemaSpec is the row of the format of records that are one JSON object each
// behind the ID of its schema. Values say themselves what they are, so nothing of
// the schema is needed.
var jsonSchemaSpec = FormatSpec{
	Name: "json_schema", Describes: "one JSON object behind the ID of its schema",
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

// Scan finds the values of the tree in the object behind the ID.
func (s *jsonSchemaScanner) Scan(rec *Record, values []Datum) (err error) {
	if _, s.body.Value, err = framed(rec.Value); err != nil {
		return err
	}
	return s.jsonScanner.Scan(&s.body, values)
}
