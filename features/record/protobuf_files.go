package record

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// protoFiles are .proto files by their import paths.
type protoFiles map[string]string

// wellKnownProtos are the files that registries know without a copy and whose messages are useful in events.
var wellKnownProtos = protoFiles{
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

// compile compiles a file with everything that it imports.
func (s protoFiles) compile(path string) (protoreflect.FileDescriptor, error) {
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(protocompile.ResolverFunc(s.find))}
	files, err := compiler.Compile(context.Background(), path)
	if err != nil {
		return nil, fmt.Errorf("the schema cannot be read: %s", protoReason(err))
	}
	return files[0], nil
}

// protoReason returns a compiler's error without the imports that led to the file.
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

// find finds a file by its import path or by a suffix of it, because definitions may keep the files
// in another folder.
func (s protoFiles) find(path string) (protocompile.SearchResult, error) {
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
	if file := describedFile(text); file != nil {
		file.Name = &path
		return protocompile.SearchResult{Proto: file}, nil
	}
	return protocompile.SearchResult{Source: io.Reader(strings.NewReader(text))}, nil
}

// describedFile returns the file that a descriptor in base64 describes, or nil if the text is no descriptor.
// Confluent's serializers for Python and .NET register descriptors, and not every registry makes a .proto file of them.
func describedFile(text string) *descriptorpb.FileDescriptorProto {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(data) == 0 {
		return nil
	}
	file := new(descriptorpb.FileDescriptorProto)
	if proto.Unmarshal(data, file) != nil {
		return nil
	}
	return file
}

// byEnd finds the only file whose path ends with the import's path, or whose path is an end of the import's.
func (s protoFiles) byEnd(path string) (found string, ok bool) {
	for given, text := range s {
		if strings.HasSuffix(given, "/"+path) || strings.HasSuffix(path, "/"+strings.TrimPrefix(given, "./")) {
			if ok {
				return "", false // ambiguous
			}
			found, ok = text, true
		}
	}
	return found, ok
}
