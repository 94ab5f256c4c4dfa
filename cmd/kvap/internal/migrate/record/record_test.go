package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func aReview(uid string, object map[string]any) []byte {
	data, err := json.Marshal(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": map[string]any{
			"uid": uid, "kind": map[string]any{"group": "", "version": "v1", "kind": "ConfigMap"}, "namespace": "default",
			"operation": "CREATE", "object": object,
		},
	})
	if err != nil {
		panic(err)
	}
	return data
}

// ask sends a review and gives whether it was admitted.
func ask(t *testing.T, url string, review []byte) (admitted bool, status int) {
	t.Helper()
	answer, err := http.Post(url+"/record", "application/json", bytes.NewReader(review))
	if err != nil {
		t.Error(err)
		return false, 0
	}
	defer answer.Body.Close()
	var out struct {
		Response struct {
			UID     string `json:"uid"`
			Allowed bool   `json:"allowed"`
		} `json:"response"`
	}
	data, _ := io.ReadAll(answer.Body)
	_ = json.Unmarshal(data, &out) // what is refused has no answer in it
	return out.Response.Allowed && out.Response.UID != "", answer.StatusCode
}

func plain(t *testing.T) *Masker {
	t.Helper()
	m, err := NewMasker(nil, []byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// lines are those of all files in a folder.
func lines(t *testing.T, dir string) (out []map[string]any) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "requests-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewScanner(f)
		in.Buffer(nil, 32<<20)
		for in.Scan() {
			var line map[string]any
			if err := json.Unmarshal(in.Bytes(), &line); err != nil {
				t.Fatalf("%s: %v: %s", name, err, in.Text())
			}
			out = append(out, line)
		}
		f.Close()
	}
	return out
}

// TestNothingIsLost: many ask at once, and each request is in the files once.
func TestNothingIsLost(t *testing.T) {
	dir := t.TempDir()
	files, err := OpenFiles(dir, Smallest)
	if err != nil {
		t.Fatal(err)
	}
	r := New(Options{Mask: plain(t), To: files, Namespace: func(name string) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": name, "labels": map[string]any{"a": "b"}, "managedFields": []any{},
			"annotations": map[string]any{"c": "d", lastApplied: "secret"}}}
	}})
	server := httptest.NewServer(r)
	defer server.Close()
	const askers, each = 20, 100
	var done sync.WaitGroup
	for a := range askers {
		done.Go(func() {
			for i := range each {
				if ok, _ := ask(t, server.URL, aReview(fmt.Sprintf("%d-%d", a, i), map[string]any{"data": map[string]any{"a": strings.Repeat("x", 2000)}})); !ok {
					t.Errorf("request %d-%d was not admitted", a, i)
				}
			}
		})
	}
	done.Wait()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	seen := map[any]int{}
	for _, l := range lines(t, dir) {
		seen[l["id"]]++
		if namespace, _ := json.Marshal(l["namespaceObject"]); !bytes.Contains(namespace, []byte(`"c":"d"`)) || !bytes.Contains(namespace, []byte(`"a":"b"`)) ||
			bytes.Contains(namespace, []byte("secret")) || bytes.Contains(namespace, []byte("managedFields")) || l["request"] == nil {
			t.Fatalf("a line lacks something: %v", l)
		}
	}
	counts := r.Counts()
	if len(seen) != askers*each || counts.Lost() != 0 || counts.Recorded != askers*each {
		t.Errorf("%d requests in the files, of %d; %+v", len(seen), askers*each, counts)
	}
	if ok, _ := ask(t, server.URL, aReview("late", nil)); !ok {
		t.Error("who asks after the end is not admitted")
	}
}

// stuck is a sink that does nothing before it is told to.
type stuck struct {
	release chan struct{}
	lines   int
}

func (s *stuck) Write([]byte) error {
	<-s.release
	s.lines++
	return nil
}

func (*stuck) Close() error { return nil }

// TestAnAnswerWaitsForNobody: the disk stands still until everybody has an answer.
func TestAnAnswerWaitsForNobody(t *testing.T) {
	sink := &stuck{release: make(chan struct{})}
	r := New(Options{Mask: plain(t), To: sink, Queue: 5})
	server := httptest.NewServer(r)
	defer server.Close()
	var done sync.WaitGroup
	for i := range 50 {
		done.Go(func() {
			if ok, _ := ask(t, server.URL, aReview(fmt.Sprint(i), nil)); !ok {
				t.Error("a request was not admitted")
			}
		})
	}
	done.Wait()
	close(sink.release)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	c := r.Counts()
	if c.Dropped == 0 || c.Recorded+c.Dropped != 50 || int64(sink.lines) != c.Recorded || c.Lost() != c.Dropped {
		t.Errorf("%+v, %d lines; want all to be recorded or counted as dropped", c, sink.lines)
	}
}

// TestWhatWaitsIsBounded in bytes too.
func TestWhatWaitsIsBounded(t *testing.T) {
	sink := &stuck{release: make(chan struct{})}
	r := New(Options{Mask: plain(t), To: sink, QueueBytes: 10_000})
	server := httptest.NewServer(r)
	defer server.Close()
	for i := range 10 {
		ask(t, server.URL, aReview(fmt.Sprint(i), map[string]any{"x": strings.Repeat("x", 3000)}))
	}
	if waiting := r.waiting.Load(); waiting > 10_000 {
		t.Errorf("%d bytes wait", waiting)
	}
	close(sink.release)
	_ = r.Close()
	if c := r.Counts(); c.Dropped < 5 {
		t.Errorf("%+v; want most to be dropped", c)
	}
}

// broken is a sink that fails.
type broken struct{}

func (broken) Write([]byte) error { return errors.New("no space") }

func (broken) Close() error { return nil }

// TestTrouble: what cannot be read or written is counted, and nobody is refused for it.
func TestTrouble(t *testing.T) {
	r := New(Options{Mask: plain(t), To: broken{}, MaxBytes: 1000})
	server := httptest.NewServer(r)
	defer server.Close()
	if ok, _ := ask(t, server.URL, aReview("1", nil)); !ok {
		t.Error("a request is refused because the disk is full")
	}
	if _, status := ask(t, server.URL, []byte("{}")); status != http.StatusBadRequest {
		t.Errorf("rubbish: %d", status)
	}
	if _, status := ask(t, server.URL, aReview("2", map[string]any{"x": strings.Repeat("x", 2000)})); status != http.StatusRequestEntityTooLarge {
		t.Errorf("too large: %d", status)
	}
	_ = r.Close()
	if c := r.Counts(); c.Failed != 2 || c.TooLarge != 1 || c.Asked != 3 || r.Trouble() == nil {
		t.Errorf("%+v, %v", c, r.Trouble())
	}
}

// TestSample: the share is about what was asked for, and the same requests each time.
func TestSample(t *testing.T) {
	r := New(Options{Mask: plain(t), To: broken{}, Sample: 0.1})
	defer r.Close()
	n := 0
	for i := range 10_000 {
		uid := fmt.Sprintf("0b5d7c1e-0000-4000-8000-%012d", i)
		first, again := r.wants(uid), r.wants(uid)
		if first != again {
			t.Fatal("a request is in the sample, and then not")
		}
		if first {
			n++
		}
	}
	if n < 800 || n > 1200 {
		t.Errorf("%d of 10000 with a share of 0.1", n)
	}
}

// TestFilesStayWithinTheirSize, at each moment, over a restart too; the latest lines are
// there.
func TestFilesStayWithinTheirSize(t *testing.T) {
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(1, 2))
	last := ""
	for range 2 {
		f, err := OpenFiles(dir, Smallest)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 60 {
			last = fmt.Sprintf("%d-%d", i, rng.Int())
			line := fmt.Appendf(nil, "{\"id\":%q,\"x\":%q}\n", last, strings.Repeat("x", rng.IntN(1<<20)))
			if err := f.Write(line); err != nil {
				t.Fatal(err)
			}
			if size := sizeOf(t, dir); size > Smallest || size != f.Size() {
				t.Fatalf("the files take %d bytes, they say %d, of %d", size, f.Size(), Smallest)
			}
		}
		if err := f.Write(make([]byte, Smallest/2+1)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("a line that does not fit: %v", err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	all := lines(t, dir)
	if got := all[len(all)-1]["id"]; got != last {
		t.Errorf("the last line is %v; want %s", got, last)
	}
	if _, err := OpenFiles(dir, 1<<20); err == nil {
		t.Error("files of one MiB are made")
	}
}

func sizeOf(t *testing.T, dir string) (sum int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s may be read by others: %s", e.Name(), info.Mode())
		}
		sum += info.Size()
	}
	return sum
}

func TestConfiguration(t *testing.T) {
	c, err := Configuration(Sending{ExcludeNamespaces: []string{"kube-system"}, ExcludeGroups: []string{"system:nodes"}})
	if err != nil {
		t.Fatal(err)
	}
	if h := c.Webhooks[0]; *h.FailurePolicy != "Ignore" || *h.TimeoutSeconds != 1 || *h.SideEffects != "None" || len(h.MatchConditions) != 2 {
		t.Errorf("%+v", h)
	}
	for _, seconds := range []int32{-1, 6, 30} {
		if _, err := Configuration(Sending{Seconds: seconds}); err == nil {
			t.Errorf("an API server may be made to wait for %d s", seconds)
		}
	}
}
