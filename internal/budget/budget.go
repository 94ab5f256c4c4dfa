package budget

import "sync/atomic"

// PerPolicy is how many steps any policy may take, however long it is, so that those who
// read it make less than 100 MB. Of the public policies none takes more than 30,000.
const PerPolicy = 300_000

// A Budget is the steps that are left. Several may spend of it at once. nil has no bound.
type Budget struct {
	spent   atomic.Int64
	limit   int64
	stopped func() bool
}

// New is a budget of some steps. stopped says that nobody wants the result any more; nil
// never says so.
func New(limit int64, stopped func() bool) *Budget {
	return &Budget{limit: limit, stopped: stopped}
}

// TooLarge is the panic of Spend when the steps have run out. Whoever made the budget
// recovers it, and refuses the policy.
type TooLarge struct{}

// Error says what was too large.
func (TooLarge) Error() string { return "the policy is too large: it takes too many steps" }

// Stopped is the panic of Spend when stopped says that nobody waits for the result.
type Stopped struct{}

// Error says why there is no result.
func (Stopped) Error() string { return "nobody waits for the policy any more" }

// Spend takes n steps. It panics when there are not as many, or when nobody waits.
func (b *Budget) Spend(n int) {
	if b == nil {
		return
	}
	const between = 1 << 10 // steps for each question whether to stop
	now := b.spent.Add(int64(n))
	if now > b.limit {
		panic(TooLarge{})
	}
	if b.stopped != nil && now/between != (now-int64(n))/between && b.stopped() {
		panic(Stopped{})
	}
}

// Spent is how many steps were taken.
func (b *Budget) Spent() int64 {
	if b == nil {
		return 0
	}
	return b.spent.Load()
}
