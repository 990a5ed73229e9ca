// Package bench measures Weir against a textbook consumer that computes the
// same features, side by side on one broker, each with a Redis of its own. See
// its README.
package bench
