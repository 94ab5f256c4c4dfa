package diag

import "strings"

// Nearest is the known word that a misspelt one is likely to mean, or "": none is
// near, or several are.
func Nearest(word string, known []string) string {
	best, bestDistance := "", min(3, len(word)/3)+1
	if len(word) > 40 {
		return ""
	}
	for _, k := range known {
		if strings.EqualFold(k, word) {
			return k
		}
		switch d := distance(word, k); {
		case d < bestDistance:
			best, bestDistance = k, d
		case d == bestDistance && k != best:
			best = ""
		}
	}
	return best
}

// distance counts the insertions, deletions, changes and swaps of neighbours
// between two words.
func distance(a, b string) int {
	before, last := []int(nil), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
