package interp

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/cronexpr"
	"github.com/robfig/cron/v3"
)

// NextRun is the first time behind another at which a schedule is due: five fields
// of cron, or a word such as @daily. Times are in UTC.
func NextRun(schedule string, after time.Time) (time.Time, error) {
	s, err := cron.ParseStandard(schedule)
	return nextOf(schedule, s, err, after)
}

// NextDeletion is NextRun for a DeletingPolicy, whose schedules may also have a year at the
// end, seconds in front, and L, W and #.
func NextDeletion(schedule string, after time.Time) (time.Time, error) {
	s, err := cronexpr.Parse(schedule)
	return nextOf(schedule, s, err, after)
}

// nextOf is the next time of what was read of a schedule, if it could be.
func nextOf(schedule string, s interface{ Next(time.Time) time.Time }, err error, after time.Time) (time.Time, error) {
	if err != nil {
		return time.Time{}, fmt.Errorf("the schedule %q cannot be read: %w", schedule, err)
	}
	next := s.Next(after.UTC())
	if next.IsZero() {
		return next, NeverDueError{schedule}
	}
	return next, nil
}

// A NeverDueError tells of a schedule that can be read, and has no time that is still to come.
type NeverDueError struct{ Schedule string }

func (e NeverDueError) Error() string { return fmt.Sprintf("the schedule %q is never due", e.Schedule) }

// TTLLabel is the label that gives an object an end, and PropagationAnnotation says
// what becomes of what it owns: Foreground, Background or Orphan.
const (
	TTLLabel              = "cleanup.kyverno.io/ttl"
	PropagationAnnotation = "cleanup.kyverno.io/propagation-policy"
)

// Expiry is when an object ends whose label has a value: a duration, counted from its
// creation, a time as in 2026-01-31T235959Z, or a date, both in UTC.
func Expiry(value string, created time.Time) (time.Time, error) {
	if d, ok := lifetime(value); ok {
		return created.Add(d), nil
	}
	for _, layout := range []string{"2006-01-02T150405Z", time.DateOnly} {
		if t, err := time.Parse(layout, value); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("the value %q of the label %s is neither a duration, such as 90m or 2d, nor a time, such as 2026-01-31 or 2026-01-31T235959Z", value, TTLLabel)
}

// lifetime reads a duration of Go's, or numbers with units up to weeks.
func lifetime(text string) (time.Duration, bool) {
	if d, err := time.ParseDuration(text); err == nil {
		return d, true
	}
	total, rest := time.Duration(0), text
	for rest != "" {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.ParseInt(rest[:digits], 10, 64)
		if err != nil {
			return 0, false
		}
		rest = rest[digits:]
		letters := strings.IndexAny(rest, "0123456789")
		if letters < 0 {
			letters = len(rest)
		}
		unit := unitOf(strings.ToLower(rest[:letters]))
		rest = rest[letters:]
		if unit == 0 || n > int64((math.MaxInt64-total)/unit) {
			return 0, false
		}
		total += time.Duration(n) * unit
	}
	return total, text != ""
}

// unitOf is the length of a unit, by its letters or the beginning of its name.
func unitOf(text string) time.Duration {
	for _, u := range []struct {
		short, name string
		length      time.Duration
	}{
		{"ns", "nano", time.Nanosecond}, {"us µs", "micro", time.Microsecond}, {"ms", "milli", time.Millisecond},
		{"s", "sec", time.Second}, {"m", "min", time.Minute}, {"h hr", "hour", time.Hour},
		{"d", "day", 24 * time.Hour}, {"w wk", "week", 7 * 24 * time.Hour},
	} {
		if strings.HasPrefix(text, u.name) {
			return u.length
		}
		for short := range strings.FieldsSeq(u.short) {
			if text == short {
				return u.length
			}
		}
	}
	return 0
}
