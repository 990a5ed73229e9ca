// Package bench measures Weir against a textbook consumer that computes the same features, both on
// one broker, each with a Redis of its own. See its README.
package bench
