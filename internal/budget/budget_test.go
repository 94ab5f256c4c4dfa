package budget_test

import (
	"testing"

	"github.com/kvap/kvap/internal/budget"
)

// spends is what spending n single steps ends with, and how many were spent.
func spends(b *budget.Budget, n int) (end any, spent int64) {
	defer func() { end, spent = recover(), b.Spent() }()
	for range n {
		b.Spend(1)
	}
	return nil, 0
}

func TestSpend(t *testing.T) {
	if end, spent := spends(budget.New(100, nil), 100); end != nil || spent != 100 {
		t.Errorf("as many as there are: %v after %d", end, spent)
	}
	if end, spent := spends(budget.New(100, nil), 1000); end != (budget.TooLarge{}) || spent != 101 {
		t.Errorf("more than there are: %v after %d", end, spent)
	}
	if end, spent := spends(budget.New(100_000, func() bool { return true }), 50_000); end != (budget.Stopped{}) || spent > 2048 {
		t.Errorf("stopped: %v after %d", end, spent)
	}
	if end, _ := spends(nil, 1000); end != nil {
		t.Errorf("without a bound: %v", end)
	}
}
