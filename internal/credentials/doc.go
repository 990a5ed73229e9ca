// Package credentials holds what tells friends from strangers, read from files
// that may change while the process runs: tokens, certificates, authorities.
package credentials
