// Package credentials authenticates clients by tokens and certificates. Tokens come from a file or
// from an OpenID Connect issuer; files may change while the process runs.
package credentials
