package turns

import (
	"context"
	"errors"
	"testing"
	"time"
)

// What has one name and waits for something slow leaves turns to others.
func TestTurnsForOthers(t *testing.T) {
	turns := New(4, 2)
	over, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	var held []func()
	take := func(name string) {
		done, err := turns.Take(t.Context(), name, name)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, done)
	}
	take("slow")
	take("slow")
	take("other")
	take("one more")
	if _, err := turns.Take(over, "third", "third"); !errors.Is(err, ErrInAll) {
		t.Errorf("a fifth: %v", err)
	}
	if _, err := turns.Take(over, "slow", "slow"); !errors.Is(err, ErrOfName) {
		t.Errorf("a third of the slow ones: %v", err)
	}
	for _, done := range held {
		done()
	}
	if len(turns.names) > 0 || turns.all.Left() != 4 {
		t.Errorf("%d names are left, or turns are not given back", len(turns.names))
	}
}

// No more wait of one name than may.
func TestWaitingOfAName(t *testing.T) {
	turns := NewBounded(4, 1, 1)
	done, err := turns.Take(t.Context(), "slow", "slow")
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error)
	go func() {
		done, err := turns.Take(t.Context(), "slow", "slow")
		if err == nil {
			done()
		}
		waited <- err
	}()
	for users := 0; users < 2; time.Sleep(time.Millisecond) {
		turns.mu.Lock()
		users = turns.names["slow slow"].users
		turns.mu.Unlock()
	}
	over, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := turns.Take(over, "slow", "slow"); !errors.Is(err, ErrOfName) || over.Err() != nil {
		t.Errorf("a second that waits: %v", err)
	}
	done()
	if err := <-waited; err != nil || len(turns.names) > 0 {
		t.Errorf("the first that waits: %v, %d names are left", err, len(turns.names))
	}
}
