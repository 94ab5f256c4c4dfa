package cluster

import (
	"github.com/kvap/kvap/cel"
)

// Nearest is the release that kvap knows and that is nearest to the server's.
func Nearest(c *Connection) (release cel.Release, same bool) {
	release, err := cel.ParseRelease(c.Release)
	switch {
	case err != nil || release > cel.Latest:
		return cel.Latest, false
	case release < cel.Oldest:
		return cel.Oldest, false
	}
	return release, true
}
