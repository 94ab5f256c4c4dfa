package world

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Rules that are about what they list get it as it is, though a watch has not told yet of what
// was written. Rules about something else are answered from memory.
func TestListsOfWhatRulesAreAbout(t *testing.T) {
	const path = "/apis/example.com/v1/namespaces/shop/widgets"
	var names atomic.Value
	names.Store("a")
	var by []string
	w := world(t, Options{Called: func(b string) { by = append(by, b) }}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		widget := func(metadata string) string {
			return `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"resourceVersion":"1",` + metadata + `}}`
		}
		var items []string
		for _, name := range strings.Fields(names.Load().(string)) {
			items = append(items, widget(`"namespace":"shop","name":"`+name+`"`))
		}
		if r.URL.Query().Get("watch") != "" { // which tells of what is there, and of nothing more
			if r.URL.Query().Get("sendInitialEvents") != "" {
				for _, item := range items {
					_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`, item)
				}
				_, _ = fmt.Fprintf(w, `{"type":"BOOKMARK","object":%s}`, widget(`"annotations":{"k8s.io/initial-events-end":"true"}`))
			}
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		_, _ = fmt.Fprintf(w, `{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{"resourceVersion":"1"},"items":[%s]}`, strings.Join(items, ","))
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.watches.begin(ctx)
	has := func(answer []byte, err error) bool {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(answer), `"name":"b"`)
	}
	has(w.API(ctx, path, nil))
	at, _ := placeOf(path)
	awaitAnswer(t, w.watches, at, func(l list) bool { return len(l.Items) == 1 })
	names.Store("a b")
	if by = nil; has(w.API(ctx, path, nil)) || len(by) != 1 || by[0] != ByMemory {
		t.Errorf("rules about something else are answered by %v", by)
	}
	about := w.About(func(group, resource string) bool { return group == "example.com" && resource == "widgets" })
	if by = nil; !has(about.API(ctx, path, nil)) || len(by) != 1 || by[0] != ByServer {
		t.Errorf("rules about what they list miss what was written, or are answered by %v", by)
	}
	if _, err := about.API(ctx, path+"/../gadgets", nil); err == nil {
		t.Error("a path with dots is asked for")
	}
}

// Who asks shares what was begun to be read later, never what was begun before.
func TestReadingsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := 0
		r := newReadings(func(string) { shared++ })
		begun := 0
		read := func() ([]byte, error) {
			begun++
			answer := fmt.Sprint(begun)
			time.Sleep(time.Second)
			return []byte(answer), nil
		}
		answers := make(chan string, 20)
		ask := func() {
			go func() {
				answer, err := r.read(t.Context(), "/path", read)
				answers <- fmt.Sprintf("%s %v", answer, err)
			}()
			synctest.Wait()
		}
		ask()
		if answer := <-answers; answer != "1 <nil>" {
			t.Errorf("alone: %s", answer)
		}
		ask()
		for range 10 { // while the second is under way
			ask()
		}
		impatient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := r.read(impatient, "/path", read); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who does not wait: %v", err)
		}
		if answer := <-answers; answer != "2 <nil>" {
			t.Errorf("the second: %s", answer)
		}
		for range 10 {
			if answer := <-answers; answer != "3 <nil>" {
				t.Errorf("one that asked meanwhile: %s", answer)
			}
		}
		synctest.Wait()
		if begun != 3 || shared != 10 || len(r.of) != 0 {
			t.Errorf("%d are read and %d share one, %d are known", begun, shared, len(r.of))
		}
	})
}
