package controller

import "time"

// longestRetry is how long a pass waits at most for what API servers may know any moment.
const longestRetry = time.Minute

// lateBackoff is since when there is something that API servers do not know yet, by what it is.
// They may know it soon, or never, as where a definition is not accepted.
type lateBackoff struct{ since map[string]time.Time }

// next is when to look again: soon where something is late for a moment, and later the longer
// all of it is. It is zero where nothing is late.
func (l *lateBackoff) next(late []string, now time.Time) time.Duration {
	since, wait := map[string]time.Time{}, time.Duration(0)
	for _, what := range late {
		at, known := l.since[what]
		if !known {
			at = now
		}
		since[what] = at
		if own := min(max(retryAfter, now.Sub(at)/4), longestRetry); wait == 0 || own < wait {
			wait = own
		}
	}
	l.since = since
	return wait
}
