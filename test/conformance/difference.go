package main

import (
	"encoding/json"

	"github.com/kvap/kvap/internal/deviation"
	"github.com/kvap/kvap/policy"
)

// excused tells whether a difference on a case is a listed deviation.
func excused(rule *policy.Rule, rc recordedCase, want, said string) bool {
	if rc.Request == nil {
		return false
	}
	_, ok := deviation.Of(deviation.Difference{
		Rule: rule, Operation: string(rc.Request.Operation), Want: want, Said: said,
		Object: decoded(rc.Request.Object.Raw), Before: decoded(rc.Request.OldObject.Raw),
	})
	return ok
}

func decoded(raw []byte) (v any) {
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}
