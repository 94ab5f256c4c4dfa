package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kvap/kvap/test/controlplane"
)

// A process is a controller that runs.
type process struct {
	*exec.Cmd
	metrics string // where they are
	ended   chan struct{}

	mu   sync.Mutex
	heap int // bytes, the most that was seen since the last question
}

// start runs the controller with reports, and asks for its metrics again and again.
func (b *bench) start(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil { // it is the controller's now
		return err
	}
	text, err := os.ReadFile(b.plane.Kubeconfig(controlplane.Admin))
	if err != nil {
		return err
	}
	file := filepath.Join(b.folder, "kubeconfig")
	text = []byte(strings.ReplaceAll(string(text), b.plane.URL(), "https://"+b.proxy.Addr().String()))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	args := []string{"--kubeconfig", file, "--reports", "wgpolicyk8s", "--metrics-bind-address", address}
	if b.profiles != "" {
		args = append(args, "--pprof-bind-address", pprofAddress)
	}
	p := &process{Cmd: exec.CommandContext(ctx, b.program, args...), metrics: "http://" + address + "/metrics", ended: make(chan struct{})}
	log, err := os.OpenFile(filepath.Join(b.folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the controller has a copy
	p.Stderr = log
	if err := p.Start(); err != nil {
		return err
	}
	b.controller = p
	go func() {
		_ = p.Wait() // how it ended stands in its log
		close(p.ended)
	}()
	go func() {
		for sleep(ctx, time.Second) == nil {
			select {
			case <-p.ended:
				return
			default:
				_, _ = p.counts(ctx) // it may not serve yet
			}
		}
	}()
	return nil
}

// kill ends it at once.
func (p *process) kill() {
	_ = p.Process.Kill() // it may have ended
	<-p.ended
}

// counts are what the controller counts of its scans.
type counts struct {
	rounds, judged, reports, errors int
	took                            time.Duration // of the rounds
}

func (p *process) counts(ctx context.Context) (c counts, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.metrics, nil)
	if err != nil {
		return c, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return c, err
	}
	defer response.Body.Close()    //nolint:errcheck // it is read
	values := map[string]float64{} // by name; those with labels together
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if name, _, _ = strings.Cut(name, "{"); name != "#" {
			n, _ := strconv.ParseFloat(value[strings.LastIndex(value, " ")+1:], 64)
			values[name] += n
		}
	}
	c = counts{
		rounds: int(values["kvap_scans_total"]), judged: int(values["kvap_scan_objects_judged_total"]),
		reports: int(values["kvap_scan_reports"]), errors: int(values["kvap_scan_errors_total"]),
		took: time.Duration(values["kvap_scan_duration_seconds_sum"] * float64(time.Second)),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heap = max(p.heap, int(values["go_memstats_heap_inuse_bytes"]))
	return c, lines.Err()
}

// until returns what is counted when that is as it should be.
func (p *process) until(ctx context.Context, right func(counts) bool) (counts, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		c, err := p.counts(ctx)
		if err == nil && right(c) {
			return c, nil
		}
		select {
		case <-p.ended:
			return c, errors.New("the controller has ended")
		case <-ctx.Done():
			return c, fmt.Errorf("it is not as it should be: %+v: %w", c, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// patience is how long a step takes at most.
const patience = 10 * time.Minute

// memoryUse is what a process holds, in MiB; zero where the system does not say. The peak is since
// the last question.
type memoryUse struct{ now, peak, program, heap int }

func (p *process) memory() (m memoryUse) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.Atoi(fields[1])
		switch fields[0] {
		case "VmRSS:":
			m.now = kib >> 10
		case "VmHWM:":
			m.peak = kib >> 10
		case "RssFile:":
			m.program = kib >> 10
		}
	}
	const resetPeak = "5"
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.Process.Pid), []byte(resetPeak), 0) // else it is the peak of all its life
	p.mu.Lock()
	defer p.mu.Unlock()
	m.heap, p.heap = p.heap>>20, 0
	return m
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
