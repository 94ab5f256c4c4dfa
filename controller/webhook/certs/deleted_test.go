package certs

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"
)

// A registered bundle is what API servers trust.
type registered struct{ bundle []byte }

func (r *registered) knows(_ context.Context, authority *x509.Certificate) (bool, error) {
	return bytes.Contains(r.bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw})), nil
}

// Whoever deletes what is stored, as to have another authority, has one later: every replica
// shows what API servers trust until they know the new authority, whichever replica looks first,
// be it one that has just begun.
func TestStoreIsDeleted(t *testing.T) {
	for name, fresh := range map[string]bool{"a replica looks first": false, "a new replica looks first": true} {
		t.Run(name, func(t *testing.T) {
			store, trust, c := &memory{}, &registered{}, &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			begin := func() *Authority {
				return NewAuthority(Options{Store: store, Names: loopback(), Now: c.Now, Known: trust.knows})
			}
			renew := func(list ...*Authority) {
				t.Helper()
				for _, a := range list {
					if err := a.Renew(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			old := []*Authority{begin(), begin()}
			renew(old...)
			trust.bundle = old[0].Bundle()
			renew(old...)
			first, _ := old[0].Certificate(nil)

			store.data = nil
			all := old
			if fresh {
				all = append([]*Authority{begin()}, old...)
			}
			renew(all...)
			shows := old // what API servers trust
			if !fresh {  // whoever begins later too
				late := begin()
				renew(late)
				all, shows = append(all, late), append(old, late)
			}
			for range 40 {
				renew(all...)
				renew(all...) // each hears of what another has stored
				for _, a := range shows {
					shown, err := a.Certificate(nil)
					if err != nil {
						t.Fatal(err)
					}
					verify(t, shown.Leaf, trust.bundle, c.Now())
				}
				if t.Failed() {
					return
				}
				trust.bundle = all[0].Bundle() // by the leader
				c.advance(5 * time.Minute)
			}
			for _, a := range all {
				shown, _ := a.Certificate(nil)
				if shown.Leaf.Equal(first.Leaf) {
					t.Error("the authority is the one that was deleted")
				}
				verify(t, shown.Leaf, trust.bundle, c.Now())
			}
		})
	}
}
