// Package credentials authenticates clients by files that may change while the process
// runs: tokens, certificates and authorities.
package credentials
