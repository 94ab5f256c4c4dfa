package merge

import "fmt"

// maxNodes bounds the work of one patch. A template in a list is repeated for each
// element, so a patch of a few kilobytes and an object of a megabyte could come to
// gigabytes.
const maxNodes = 1_000_000

type budget struct{ nodes int }

func (b *budget) spend(n int) error {
	if b.nodes -= n; b.nodes < 0 {
		return fmt.Errorf("the patch makes too much of the object: more than %d values", maxNodes)
	}
	return nil
}
