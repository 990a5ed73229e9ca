package reply

import (
	"bytes"
	"encoding/json"
)

// AppendJSON encodes values that are rarely written. Their types have no values that JSON cannot express.
func AppendJSON(dst []byte, v any) []byte {
	buffer := bytes.NewBuffer(dst)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(err)
	}
	return buffer.Bytes()
}
