//go:build unix && !linux

package controlplane

import "syscall"

// groupMemberThatDiesWithUs is a plain member where the kernel knows no signal
// for the death of a parent: there the watchdog is alone.
func groupMemberThatDiesWithUs(group int) *syscall.SysProcAttr { return groupMember(group) }
