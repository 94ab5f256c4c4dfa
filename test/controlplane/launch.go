//go:build unix

package controlplane

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// watch is the watchdog. Its input ends when the process that started it does;
// then it asks its group to end, removes the folder of data, and ends the group,
// itself included. A TERM that reaches the watchdog alone makes it do so too.
const watch = `trap : TERM
cat >/dev/null
kill -TERM 0
sleep 1
[ -z "$1" ] || rm -rf -- "$1"
kill -KILL 0`

// A launcher starts the processes of one control plane, all in one group.
type launcher struct {
	watchdog *exec.Cmd
	alive    io.Closer // the pipe whose end the watchdog waits for
	attr     func(group int) *syscall.SysProcAttr

	starts  chan func() // what the kept thread is to do
	mu      sync.Mutex
	running map[string]server
	stopped bool
}

// A server is one process that was started.
type server struct {
	pid   int
	kill  func() error  // at once, unless it has ended
	ended chan struct{} // closed when it has
}

// newLauncher starts the watchdog, which removes the folder in the end, if there
// is one to remove.
func newLauncher(remove string, deathSignal bool) (*launcher, error) {
	l := &launcher{attr: groupMember, starts: make(chan func()), running: map[string]server{}}
	if deathSignal {
		l.attr = groupMemberThatDiesWithUs
	}
	l.watchdog = exec.Command("/bin/sh", "-c", watch, "kvap-controlplane-watchdog", remove)
	l.watchdog.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	alive, err := l.watchdog.StdinPipe()
	if err != nil {
		return nil, err
	}
	l.alive = alive
	if err := l.watchdog.Start(); err != nil {
		return nil, fmt.Errorf("the watchdog does not start: %w", err)
	}
	go l.keepThread()
	return l, nil
}

// keepThread starts processes on one thread, and keeps the thread until stop.
func (l *launcher) keepThread() {
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	for start := range l.starts {
		start()
	}
}

// start runs a server with its output in a log, and more in its environment.
func (l *launcher) start(name, log, path string, environment []string, flags ...string) error {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close() // the server has a copy
	cmd := exec.Command(path, flags...)
	cmd.Stdout, cmd.Stderr = out, out
	if len(environment) > 0 {
		cmd.Env = append(os.Environ(), environment...)
	}
	cmd.SysProcAttr = l.attr(l.group())
	started := make(chan error)
	l.starts <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return err
	}
	s := server{pid: cmd.Process.Pid, kill: cmd.Process.Kill, ended: make(chan struct{})}
	l.mu.Lock()
	l.running[name] = s
	l.mu.Unlock()
	go func() {
		_ = cmd.Wait() // how it ended stands in its log
		close(s.ended)
	}()
	return nil
}

// group is the number of the process group: that of its leader.
func (l *launcher) group() int { return l.watchdog.Process.Pid }

// ended is closed when the server has ended.
func (l *launcher) ended(name string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running[name].ended
}

// kill ends a server at once, and returns when it is gone.
func (l *launcher) kill(name string) error {
	l.mu.Lock()
	s, ok := l.running[name]
	l.mu.Unlock()
	if !ok {
		return fmt.Errorf("%s was not started", name)
	}
	if err := s.kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-s.ended
	return nil
}

// stop kills the group and returns when every process of it is gone. The leader
// is waited for last, so the group's number is ours until the end.
func (l *launcher) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return
	}
	l.stopped = true
	_ = syscall.Kill(-l.group(), syscall.SIGKILL)
	for _, s := range l.running {
		<-s.ended
	}
	_ = l.watchdog.Wait() // it was killed
	_ = l.alive.Close()
	close(l.starts)
}

func groupMember(group int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: group}
}
