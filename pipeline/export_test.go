package pipeline

// A wrong transition of a partition is a panic in all tests of the package.
func init() { strict = true }
