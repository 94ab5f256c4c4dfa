package cel

import (
	"fmt"
	"strconv"
	"strings"
)

// A Release is a minor release of Kubernetes: 34 is 1.34. The zero Release is
// older than all.
type Release int

// The releases that have ValidatingAdmissionPolicy in v1 and that kvap knows.
const (
	Oldest Release = 30
	Latest Release = 37
)

// Default is the oldest release that upstream still maintains: what it takes,
// every maintained release takes.
const Default Release = 34

// Never is newer than every release: no API server has the feature.
const Never Release = 1 << 30

// Supported are the releases kvap compiles for, the oldest first.
func Supported() []Release {
	var rs []Release
	for r := Oldest; r <= Latest; r++ {
		rs = append(rs, r)
	}
	return rs
}

// ParseRelease reads 1.34 and v1.34, and with a patch level or build, as a server
// states its version: v1.34.2+k3s1.
func ParseRelease(s string) (Release, error) {
	major, rest, ok := strings.Cut(strings.TrimPrefix(s, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	minor = strings.TrimSuffix(minor, "+") // some providers state 34+
	m, err := strconv.Atoi(minor)
	if !ok || major != "1" || err != nil || m < 0 || minor[0] == '+' {
		return 0, fmt.Errorf("%q is no Kubernetes release; write it as 1.%d", s, Latest)
	}
	return Release(m), nil
}

// String is 1.34, for instance.
func (r Release) String() string {
	if r >= Never {
		return "never"
	}
	return "1." + strconv.Itoa(int(r))
}

// Compare is negative when r is older than s, zero when it is the same.
func (r Release) Compare(s Release) int { return int(r) - int(s) }

// Supports tells that a policy that needs what need states can be created on r.
func (r Release) Supports(need Release) bool { return need <= r }

// IsSupported tells that kvap compiles for r.
func (r Release) IsSupported() bool { return Oldest <= r && r <= Latest }
