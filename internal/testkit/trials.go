package testkit

// Trials is how many of so many random trials are made: under the race detector, where each
// takes several times as long, a third of them.
func Trials(n int) int {
	if Race {
		return max(1, n/3)
	}
	return n
}
