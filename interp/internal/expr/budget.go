package expr

import "fmt"

// maxSteps bounds the work of one expression: nodes evaluated, elements visited,
// and a sixteenth of the bytes of text made. Data is shared, not copied, so a
// short expression can make a value that is exponentially large.
const maxSteps = 10_000_000

// maxTextSize bounds a text that a function makes.
const maxTextSize = 16 << 20

// spend counts steps, and looks now and then whether the time is up.
func (ev *evaluator) spend(n int) error {
	before := ev.steps >> 10
	ev.steps -= n
	if ev.steps>>10 == before {
		return nil
	}
	return ev.alive()
}

// alive tells whether there are steps and time left.
func (ev *evaluator) alive() error {
	if ev.steps < 0 {
		return fmt.Errorf("the expression takes too many steps; make it simpler, or its data smaller")
	}
	return ev.ctx.Err()
}

// measure spends what it takes to visit all of a value, so that it can be
// compared or printed.
func (ev *evaluator) measure(v any) error {
	size := 1
	switch v := v.(type) {
	case string:
		size += len(v) >> 4
	case []any:
		for _, item := range v {
			if err := ev.measure(item); err != nil {
				return err
			}
		}
	case itemList:
		return ev.measure([]any(v))
	case map[string]any:
		for key, item := range v {
			size += len(key) >> 4
			if err := ev.measure(item); err != nil {
				return err
			}
		}
	}
	return ev.spend(size)
}
