package expr

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/jmespath"
)

// timeFunction is the functions of times, which are texts as RFC 3339 writes
// them.
func timeFunction(f jmespath.Func) function {
	switch f {
	case jmespath.FuncTimeAdd:
		return parsing(timeAdd)
	case jmespath.FuncTimeAfter:
		return onTimes(func(t []time.Time) any { return t[0].After(t[1]) })
	case jmespath.FuncTimeBefore:
		return onTimes(func(t []time.Time) any { return t[0].Before(t[1]) })
	case jmespath.FuncTimeBetween:
		return onTimes(func(t []time.Time) any { return t[0].After(t[1]) && t[0].Before(t[2]) })
	case jmespath.FuncTimeDiff:
		return onTimes(func(t []time.Time) any { return t[1].Sub(t[0]).String() })
	case jmespath.FuncTimeNow:
		return func(ev *evaluator, _ []any) (any, error) { return ev.now(false) }
	case jmespath.FuncTimeNowUTC:
		return func(ev *evaluator, _ []any) (any, error) { return ev.now(true) }
	case jmespath.FuncTimeParse:
		return parsing(timeParse)
	case jmespath.FuncTimeSince:
		return timeSince
	case jmespath.FuncTimeToCron:
		return onTimes(func(t []time.Time) any { return cron(t[0]) })
	case jmespath.FuncTimeTruncate:
		return parsing(timeTruncate)
	case jmespath.FuncTimeUTC:
		return onTimes(func(t []time.Time) any { return t[0].UTC().Format(time.RFC3339) })
	}
	return nil
}

func onTimes(f func([]time.Time) any) function {
	return parsing(func(texts ...string) (any, error) {
		times := make([]time.Time, len(texts))
		for i, text := range texts {
			t, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return nil, err
			}
			times[i] = t
		}
		return f(times), nil
	})
}

func (ev *evaluator) now(utc bool) (any, error) {
	if ev.around.World == nil {
		return nil, errors.New("there is no clock here")
	}
	now := ev.around.World.Now()
	if utc {
		now = now.UTC()
	}
	return now.Format(time.RFC3339), nil
}

func timeAdd(s ...string) (any, error) {
	t, d, err := timeAndDuration(s)
	return t.Add(d).Format(time.RFC3339), err
}

func timeTruncate(s ...string) (any, error) {
	t, d, err := timeAndDuration(s)
	return t.Truncate(d).Format(time.RFC3339), err
}

func timeAndDuration(s []string) (time.Time, time.Duration, error) {
	t, err := time.Parse(time.RFC3339, s[0])
	if err != nil {
		return t, 0, err
	}
	d, err := time.ParseDuration(s[1])
	return t, d, err
}

// timeParse reads a time in a layout of Go. A layout of digits says that the time
// is the number of seconds since 1970.
func timeParse(s ...string) (any, error) {
	layout, text := s[0], s[1]
	if layout != "" && datum.CountDigits(layout) == len(layout) {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, err
		}
		return time.Unix(seconds, 0).UTC().Format(time.RFC3339), nil
	}
	t, err := time.Parse(layout, text)
	return t.Format(time.RFC3339), err
}

// timeSince is the time between two times in a layout; up to now if there is no
// second, and in RFC 3339 if there is no layout.
func timeSince(ev *evaluator, args []any) (any, error) {
	layout, from, to := args[0].(string), args[1].(string), args[2].(string)
	if layout == "" {
		layout = time.RFC3339
	}
	start, err := time.Parse(layout, from)
	if err != nil {
		return nil, err
	}
	if to != "" {
		end, err := time.Parse(layout, to)
		return end.Sub(start).String(), err
	}
	if ev.around.World == nil {
		return nil, errors.New("there is no clock here")
	}
	return ev.around.World.Now().Sub(start).String(), nil
}

func cron(t time.Time) string {
	return fmt.Sprintf("%d %d %d %d %d", t.Minute(), t.Hour(), t.Day(), t.Month(), t.Weekday())
}
