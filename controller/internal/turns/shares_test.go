package turns

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Where nothing is left one share goes beyond it to its end, and then others do.
func TestBeyondWhatIsLeft(t *testing.T) {
	s := NewShares(10, 1)
	a, b := s.Of("one"), s.Of("other")
	ended, end := context.WithCancel(t.Context())
	end()
	for _, share := range []*Share{a, b} {
		if err := share.Take(ended, 5); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Take(ended, 5); err != nil {
		t.Errorf("the first beyond: %v", err)
	}
	if err := b.Take(ended, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a second beyond: %v", err)
	}
	if err := a.Take(ended, 100); err != nil {
		t.Errorf("the first, once more: %v", err)
	}
	waited := make(chan error)
	go func() { waited <- b.Take(t.Context(), 7) }()
	for s.Waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	a.Free()
	if err := <-waited; err != nil {
		t.Errorf("after the first: %v", err)
	}
	b.Free()
	if s.left != 10 || s.beyond != 1 || len(s.names) != 0 {
		t.Errorf("%d of 10 are left, %d may go beyond, %d names", s.left, s.beyond, len(s.names))
	}
}

// One name leaves a quarter to others, and each of these leaves something too. What is given back
// goes to who has least.
func TestSharesOfNames(t *testing.T) {
	s := NewShares(64, 0)
	ended, end := context.WithCancel(t.Context())
	end()
	held := map[string][]*Share{}
	for _, one := range []struct {
		name string
		want int
	}{{"first", 48}, {"second", 12}, {"third", 3}, {"fourth", 1}, {"fifth", 0}} {
		for range 64 {
			if share := s.Of(one.name); share.Take(ended, 1) == nil {
				held[one.name] = append(held[one.name], share)
			}
		}
		if got := len(held[one.name]); got != one.want {
			t.Errorf("the %s has %d, want %d", one.name, got, one.want)
		}
	}
	given := make(chan string)
	wait := func(name string) {
		before := s.Waiting()
		go func() {
			if s.Of(name).Take(t.Context(), 1) == nil {
				given <- name
			}
		}()
		for s.Waiting() == before {
			time.Sleep(time.Millisecond)
		}
	}
	wait("first")
	wait("fifth")
	held["first"][0].Free()
	if name := <-given; name != "fifth" {
		t.Errorf("given to the %s", name)
	}
}

// Who has less and waits for much is not passed by who has more and asks for little.
func TestMuchIsGivenToo(t *testing.T) {
	s := NewShares(10, 0)
	first := s.Of("first")
	if err := first.Take(t.Context(), 6); err != nil {
		t.Fatal(err)
	}
	given := make(chan error)
	go func() { given <- s.Of("second").Take(t.Context(), 8) }()
	for s.Waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := s.Of("first").Take(ended, 1); err == nil {
		t.Error("one more of the first, while the second waits")
	}
	first.Free()
	if err := <-given; err != nil {
		t.Error(err)
	}
}
