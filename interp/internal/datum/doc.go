// Package datum compares and names pieces of JSON data held as Go data: nil, bool,
// int64, float64, string, []any and map[string]any.
//
// In: data, or the text of a quantity. Out: whether they are equal or in order,
// what type they are.
//
// What must hold: there is one type of number (deviation 7). Whether a number is an
// int64 or a float64 depends on where it came from, and must never show.
//
// It knows no policies, and nothing of what operators or patterns make of data.
//
// Start at number.go.
package datum
