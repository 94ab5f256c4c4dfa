package webhook

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// oneConnection is a client that sends everything over one connection of HTTP/2, as an API
// server does.
func (c *client) oneConnection(t *testing.T) *http.Client {
	t.Helper()
	var dials atomic.Int32
	config := c.http.Transport.(*http.Transport).TLSClientConfig.Clone()
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if n := dials.Load(); n != 1 {
			t.Errorf("%d connections, want one", n)
		}
	})
	out := &http.Client{Transport: transport}
	r, err := out.Get(c.url + "/healthz")
	if err != nil || r.ProtoMajor != 2 {
		t.Fatal(r, err)
	}
	r.Body.Close()
	return out
}

// sends posts a review, and tells what came of it after how long.
func sends(to *http.Client, url, body string) (status int, text string, took time.Duration) {
	began := time.Now()
	r, err := to.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err.Error(), time.Since(began)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, err.Error(), time.Since(began)
	}
	return r.StatusCode, string(data), time.Since(began)
}

// large is the review of a ConfigMap of about so many bytes.
func large(t *testing.T, bytes int) string {
	t.Helper()
	return creation(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large","namespace":"prod"},"data":{"x":"`+strings.Repeat("x", bytes)+`"}}`)
}

// bySmall is how long a small review may take, whatever else is sent.
const bySmall = 500 * time.Millisecond

// Large reviews at once over the one connection of an API server are all answered, and a
// small one beside them at once.
func TestLargeReviewsOverOneConnection(t *testing.T) {
	for _, tt := range []struct{ count, bytes int }{{3, 6e6}, {30, 1e6}, {50, 2e6}} {
		t.Run(fmt.Sprintf("%d of %d bytes", tt.count, tt.bytes), func(t *testing.T) {
			c := start(t, Options{})
			c.Set(set(policies(t, enforced(ownerRequired))))
			over := c.oneConnection(t)
			body, small := large(t, tt.bytes), creation(t, plain)
			var wg sync.WaitGroup
			var left atomic.Int32
			left.Store(int32(tt.count))
			for range tt.count {
				wg.Go(func() {
					defer left.Add(-1)
					if status, text, took := sends(over, c.url+"/validate/fail?timeout=10s", body); status != http.StatusOK || !strings.Contains(text, `"allowed":false`) {
						t.Errorf("a large one after %v: %d %.200s", took, status, text)
					}
				})
			}
			for beside := true; beside; beside = left.Load() > 0 {
				if status, text, took := sends(over, c.url+"/validate/fail?timeout=10s", small); status != http.StatusOK || took > bySmall {
					t.Errorf("the small one after %v: %d %.200s", took, status, text)
				}
				time.Sleep(10 * time.Millisecond)
			}
			wg.Wait()
		})
	}
}

// dribble opens a connection of HTTP/1.1, announces a body, and sends the beginning of it.
func (c *client) dribble(t *testing.T, announced int, begin string) net.Conn {
	t.Helper()
	config := c.http.Transport.(*http.Transport).TLSClientConfig
	conn, err := tls.Dial("tcp", strings.TrimPrefix(c.url, "https://"), &tls.Config{RootCAs: config.RootCAs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_, _ = fmt.Fprintf(conn, "POST /validate/fail?timeout=30s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", announced, begin)
	return conn
}

// Who announces much and sends nothing keeps nobody waiting, and is told to go.
func TestBodiesThatDoNotCome(t *testing.T) {
	for _, tt := range []struct {
		name  string
		count int
		begin string
	}{{"two that send nothing", 2, ""}, {"many that send nothing", 600, ""}, {"many that begin", 300, strings.Repeat("x", 200<<10)}} {
		t.Run(tt.name, func(t *testing.T) {
			c := start(t, Options{})
			c.Set(set(policies(t, enforced(ownerRequired))))
			var conns []net.Conn
			for range tt.count {
				conns = append(conns, c.dribble(t, 8<<20, tt.begin))
			}
			if status, text, took := sends(c.http, c.url+"/validate/fail?timeout=10s", creation(t, plain)); status != http.StatusOK || took > bySmall {
				t.Errorf("a small one after %v: %d %s", took, status, text)
			}
			if status, text, took := sends(c.http, c.url+"/validate/fail?timeout=10s", large(t, 1e6)); status != http.StatusOK {
				t.Errorf("a large one after %v: %d %s", took, status, text)
			}
			last := conns[len(conns)-1]
			_ = last.SetReadDeadline(time.Now().Add(10 * time.Second))
			answer, err := http.ReadResponse(bufio.NewReader(last), nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			// on a slow machine it has memory still when the large one wants it, and makes room
			madeRoom := tt.begin != "" && answer.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(text), errBusy.Error())
			if answer.StatusCode != http.StatusRequestTimeout && !madeRoom {
				t.Errorf("who sends no more: %d %s", answer.StatusCode, text)
			}
		})
	}
}

// Bodies that have all the memory, and of which nothing comes any more, give it to one that comes,
// long before their own time is over.
func TestIdleBodiesInMemory(t *testing.T) {
	c := start(t, Options{})
	c.Set(set(policies(t, enforced(ownerRequired))))
	for range 10 {
		c.dribble(t, 8<<20, strings.Repeat("x", 2<<20))
	}
	for c.memory.large.Waiting() == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	if status, text, took := sends(c.http, c.url+"/validate/fail?timeout=10s", large(t, 1e6)); status != http.StatusOK || took > 4*time.Second {
		t.Errorf("after %v: %d %.200s", took, status, text)
	}
}

// However many bodies wait for memory, and more come, small ones are read: also one that has begun.
func TestBodiesThatWaitForMemory(t *testing.T) {
	c := start(t, Options{MaxMemory: 16})
	c.Set(set(policies(t, enforced(ownerRequired))))
	small := creation(t, plain)
	begun := c.dribble(t, len(small), small[:10])
	for range 2 * maxReading {
		c.dribble(t, 8<<20, strings.Repeat("x", 200<<10))
	}
	for c.memory.large.Waiting() < maxReading/4 {
		time.Sleep(time.Millisecond)
	}
	for end := time.Now().Add(time.Second); c.memory.large.Waiting() > maxReading; time.Sleep(time.Millisecond) {
		if time.Now().After(end) { // who had to make room waits no longer
			t.Fatalf("%d wait for memory, of %d that are read", c.memory.large.Waiting(), maxReading)
		}
	}
	_, _ = begun.Write([]byte(small[10:]))
	if answer, err := http.ReadResponse(bufio.NewReader(begun), nil); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("one that had begun: %v, %v", answer, err)
	}
	for range 20 {
		c.dribble(t, 8<<20, strings.Repeat("x", 200<<10))
		if status, text, took := sends(c.http, c.url+"/validate/fail?timeout=10s", small); status != http.StatusOK || took > bySmall {
			t.Errorf("a small one after %v, while %d wait: %d %s", took, c.memory.large.Waiting(), status, text)
		}
	}
}

// A body that comes slowly is not read for as long as the request may take.
func TestSlowBody(t *testing.T) {
	c := start(t, Options{})
	c.Set(PolicySet{})
	conn := c.dribble(t, 8<<20, "{")
	began := time.Now()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
			answer.Body.Close()
		}
	}()
	for sending := true; sending; {
		select {
		case <-ended:
			sending = false
		case <-time.After(50 * time.Millisecond):
			_, _ = conn.Write([]byte("  "))
		}
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it is read for %v", took)
	}
}

// memoryLimit is that of the chart.
const memoryLimit = 512 << 20

// serveForParent is set where the test binary is the server of TestMemoryUnderLoad.
const serveForParent = "KVAP_TEST_SERVES"

// TestServeForParent is the server of TestMemoryUnderLoad, in a process of its own.
func TestServeForParent(t *testing.T) {
	if os.Getenv(serveForParent) == "" {
		return // it is a process of the other test, and nothing by itself
	}
	c := start(t, Options{})
	c.Set(set(policies(t, enforced(ownerRequired))))
	fmt.Println(c.url)
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent ends
}

// Whatever is sent at once, the process stays below the limit of the chart.
func TestMemoryUnderLoad(t *testing.T) {
	child := exec.Command(os.Args[0], "-test.run=^TestServeForParent$")
	child.Env = append(os.Environ(), serveForParent+"=1", "GOGC=100", fmt.Sprint("GOMEMLIMIT=", memoryLimit/10*9)) // as the chart runs it
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = child.Wait()
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	trusting := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // its certificate is made in the other process
	c := &client{url: strings.TrimSpace(url), http: &http.Client{Transport: &http.Transport{TLSClientConfig: trusting}}}
	peak := func() int {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", child.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "VmHWM:")
		kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
		if err != nil {
			t.Fatal(err)
		}
		return kilobytes << 10
	}
	list := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"dense","namespace":"prod"},"data":{"x":[` + strings.Repeat("{},", 1<<18) + `{}]}}`
	for _, tt := range []struct {
		name, begin string
		announced   int
	}{
		{"a mebibyte of eight", strings.Repeat("x", 1<<20), 8 << 20},
		{"all of it", large(t, 1<<20), len(large(t, 1<<20))},
		{"many values", creation(t, list), len(creation(t, list))},
	} {
		var wg sync.WaitGroup
		for range 400 {
			wg.Go(func() {
				conn, err := tls.Dial("tcp", strings.TrimPrefix(c.url, "https://"), trusting)
				if err != nil {
					return // refused, which is a bound too
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
				_, _ = fmt.Fprintf(conn, "POST /validate/fail HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", tt.announced, tt.begin)
				_, _ = conn.Read(make([]byte, 1))
			})
		}
		wg.Wait()
		if status, text := c.post(t, "/validate/fail", creation(t, plain)); status != http.StatusOK {
			t.Errorf("%s, and a small one: %d %s", tt.name, status, text)
		}
		t.Logf("%s: %d MiB", tt.name, peak()>>20)
		if now := peak(); now > memoryLimit {
			t.Errorf("%s: %d MiB", tt.name, now>>20)
		}
	}
}
