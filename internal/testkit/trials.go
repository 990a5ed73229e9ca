package testkit

// Trials returns how many of n random trials to make: a third under the race detector, which takes
// several times as long for each.
func Trials(n int) int {
	if Race {
		return max(1, n/3)
	}
	return n
}
