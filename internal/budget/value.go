package budget

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

const (
	// largestValue is how large a value may be that CEL makes, in about the bytes of its
	// text: no object is as large.
	largestValue = 5_000_000
	// eachValue is what a value takes in a list or a map, besides what is in it.
	eachValue = 20
)

// CheckValue is an error where a value that CEL has made is larger than any that is used. It
// shares its parts, and costs little as long as nobody goes through it: x + x has the
// elements of x once. Here they count each time, as for whoever writes it out.
func CheckValue(v ref.Val) error {
	if sizeOf(v, eachValue, largestValue) > largestValue {
		return fmt.Errorf("the value is larger than %d bytes", largestValue)
	}
	return nil
}

// sizeOf is how large a value is, with so much for each that is in it; it stops counting
// after most.
func sizeOf(v ref.Val, each, most int) (sum int) {
	sum = each
	switch v := v.(type) {
	case types.String:
		sum += len(v)
	case types.Bytes:
		sum += len(v)
	case *types.Optional:
		if v.HasValue() {
			sum += sizeOf(v.GetValue(), each, most)
		}
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True && sum <= most; {
			sum += sizeOf(it.Next(), each, most-sum)
		}
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True && sum <= most; {
			key := it.Next()
			sum += sizeOf(key, each, most-sum)
			if sum <= most {
				sum += sizeOf(v.Get(key), each, most-sum)
			}
		}
	}
	return sum
}
