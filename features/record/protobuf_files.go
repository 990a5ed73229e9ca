package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// protoSources are .proto files by the names that they import each other by.
type protoSources map[string]string

// wellKnownProtos are files that registries know without being given them, as far as
// their messages are of use in events.
var wellKnownProtos = protoSources{
	"confluent/type/decimal.proto": `syntax = "proto3"; package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }`,
	"confluent/meta.proto": `syntax = "proto3"; package confluent; import "google/protobuf/descriptor.proto";
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }`,
	"google/type/money.proto": `syntax = "proto3"; package google.type;
message Money { string currency_code = 1; int64 units = 2; int32 nanos = 3; }`,
	"google/type/decimal.proto": `syntax = "proto3"; package google.type; message Decimal { string value = 1; }`,
	"google/type/date.proto":    `syntax = "proto3"; package google.type; message Date { int32 year = 1; int32 month = 2; int32 day = 3; }`,
	"google/type/latlng.proto":  `syntax = "proto3"; package google.type; message LatLng { double latitude = 1; double longitude = 2; }`,
}

// compile compiles a file with all that it imports.
func (s protoSources) compile(path string) (protoreflect.FileDescriptor, error) {
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(protocompile.ResolverFunc(s.find))}
	files, err := compiler.Compile(context.Background(), path)
	if err != nil {
		return nil, fmt.Errorf("the schema cannot be read: %s", protoReason(err))
	}
	return files[0], nil
}

// protoReason leaves out how the compiler came to look for a file.
func protoReason(err error) string {
	if missing := (*missingImport)(nil); errors.As(err, &missing) {
		return missing.Error()
	}
	return err.Error()
}

type missingImport struct{ path string }

func (e *missingImport) Error() string {
	return fmt.Sprintf("it imports %s, which is not given", e.path)
}
func (e *missingImport) Unwrap() error { return fs.ErrNotExist }

// find has a file by the path that imports it, or by the end of that, as definitions may keep
// the files in another folder.
func (s protoSources) find(path string) (protocompile.SearchResult, error) {
	text, ok := s[path]
	if !ok {
		text, ok = s.byEnd(path)
	}
	if !ok {
		text, ok = wellKnownProtos[path]
	}
	if !ok {
		return protocompile.SearchResult{}, &missingImport{path}
	}
	return protocompile.SearchResult{Source: io.Reader(strings.NewReader(text))}, nil
}

// byEnd is the one file whose path ends with an import's, or which the import's ends with.
func (s protoSources) byEnd(path string) (found string, ok bool) {
	for given, text := range s {
		if strings.HasSuffix(given, "/"+path) || strings.HasSuffix(path, "/"+strings.TrimPrefix(given, "./")) {
			if ok {
				return "", false // which of them is not for us to say
			}
			found, ok = text, true
		}
	}
	return found, ok
}
