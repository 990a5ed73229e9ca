// Package spelling writes what messages have in common: numbers with their nouns, moments, texts of others, and, for a mistyped name,
// the names that exist and the one probably meant.
package spelling

// Distance returns the number of bytes to insert, delete or replace to turn a into b (Levenshtein, 1966).
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
