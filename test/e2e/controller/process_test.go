//go:build e2e

package controller

import (
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kvap/kvap/controller"
)

func configFrom(file string) (*rest.Config, error) {
	return clientcmd.BuildConfigFromFlags("", file)
}

// dieAt kills this process before a step of a pass, the n-th time that it is due:
// "4/2" is before the second time that something is written. "0" is never.
func dieAt(when string) func(controller.Step) {
	step, times, _ := strings.Cut(when, "/")
	at, _ := strconv.Atoi(step)
	n, _ := strconv.ParseInt(times, 10, 64)
	var seen atomic.Int64
	return func(s controller.Step) {
		if int(s) == at && seen.Add(1) == max(n, 1) {
			_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}
