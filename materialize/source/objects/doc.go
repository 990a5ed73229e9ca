// Package objects reads objects of S3-compatible stores as if they were files. Each is named
// s3://bucket/key, and read as it was when it was opened.
package objects
