package budget_test

import (
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/kvap/kvap/internal/budget"
)

// What a value shares counts each time, in lists and in maps, and what is not large passes.
func TestCheckValue(t *testing.T) {
	adapter := types.DefaultTypeAdapter
	double := func(n int, twice func(v ref.Val) ref.Val) ref.Val {
		v := ref.Val(types.String("0123456789"))
		for range n {
			v = twice(v)
		}
		return v
	}
	for name, twice := range map[string]func(v ref.Val) ref.Val{
		"lists":    func(v ref.Val) ref.Val { return adapter.NativeToValue([]ref.Val{v, v}) },
		"maps":     func(v ref.Val) ref.Val { return adapter.NativeToValue(map[string]ref.Val{"a": v, "b": v}) },
		"optional": func(v ref.Val) ref.Val { return adapter.NativeToValue([]ref.Val{types.OptionalOf(v), v}) },
	} {
		for n, large := range map[int]bool{5: false, 40: true} {
			if err := budget.CheckValue(double(n, twice)); (err != nil) != large {
				t.Errorf("%s, doubled %d times: %v", name, n, err)
			}
		}
	}
	for _, v := range []ref.Val{types.String(make([]byte, 6_000_000)), types.Bytes(make([]byte, 6_000_000))} {
		if budget.CheckValue(v) == nil {
			t.Errorf("a %s of six million is not too large", v.Type().TypeName())
		}
	}
}
