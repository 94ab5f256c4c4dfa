package controlplane

import "syscall"

// groupMemberThatDiesWithUs has the kernel kill the process when the thread that
// starts it ends.
func groupMemberThatDiesWithUs(group int) *syscall.SysProcAttr {
	attr := groupMember(group)
	attr.Pdeathsig = syscall.SIGKILL
	return attr
}
