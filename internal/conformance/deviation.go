package main

// A listed deviation is a place where kvap differs from Kyverno on purpose; the
// number is that of docs/deviations.md.
type listed struct {
	number int
	reason string
}

// deviation tells whether the outcome differs from the recorded status as a
// listed deviation says. It goes by what the case is, or by the case's id where
// that cannot be told from the case; never by what a policy or rule is called.
func deviation(rc recordedCase, rule, status string, o outcome) (listed, bool) {
	return listed{}, false
}

// opinionDeviation is the same for a status that another engine gives.
func opinionDeviation(rc recordedCase, rule, want, got string) (listed, bool) {
	return listed{}, false
}
