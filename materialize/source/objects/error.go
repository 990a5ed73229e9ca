package objects

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"

	"github.com/minio/minio-go/v7"

	"github.com/weir-stream/weir/internal/reworded"
)

// Error says why a store does not give what it is asked for. It wraps nothing of the client's library: an io.EOF in
// there would pass for the end of the object.
type Error struct {
	text string
	kind error // fs.ErrNotExist, fs.ErrInvalid or nil
}

func (e *Error) Error() string { return e.text }

// Unwrap returns fs.ErrNotExist, fs.ErrInvalid or nil.
func (e *Error) Unwrap() error { return e.kind }

var errChanged = &Error{text: "the object was changed while it was read: it must stay as it is"}

// explain puts an error of the client in plain words.
func explain(err error) error {
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &Error{text: "the store does not answer in time: check its address, and what firewalls allow"}
	}
	if unsent, ok := errors.AsType[*url.Error](err); ok {
		return &Error{text: "the store cannot be reached: " + reworded.Connection(unsent.Err).Error()}
	}
	answer, ok := errors.AsType[minio.ErrorResponse](err)
	if !ok {
		return &Error{text: err.Error()}
	}
	switch said := answer.Code + ": " + answer.Message; {
	case answer.Code == minio.NoSuchBucket:
		return &Error{text: "there is no such bucket"}
	case answer.StatusCode == http.StatusNotFound:
		return &Error{"there is no such object, or no such bucket", fs.ErrNotExist}
	case answer.StatusCode == http.StatusPreconditionFailed:
		return errChanged
	case answer.StatusCode == http.StatusMovedPermanently && answer.Region != "":
		return &Error{text: fmt.Sprintf("the bucket is in region %s: set AWS_REGION", answer.Region)}
	case answer.StatusCode == http.StatusForbidden:
		return &Error{text: fmt.Sprintf("access is denied (%s): an object needs s3:GetObject, a folder or a pattern s3:ListBucket", said)}
	default:
		return &Error{text: fmt.Sprintf("the store answers %d (%s)", answer.StatusCode, said)}
	}
}
