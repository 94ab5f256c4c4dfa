package certs

import (
	"context"
	"maps"
	"strconv"
	"sync"
)

// A Memory is a Store for one process, for as long as it runs.
type Memory struct {
	mu      sync.Mutex
	data    map[string][]byte
	version int
}

// Load implements Store.
func (m *Memory) Load(context.Context) (map[string][]byte, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.data), strconv.Itoa(m.version), nil
}

// Save implements Store.
func (m *Memory) Save(_ context.Context, data map[string][]byte, version string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if version != strconv.Itoa(m.version) {
		return ErrConflict
	}
	m.data = maps.Clone(data)
	m.version++
	return nil
}
