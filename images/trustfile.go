package images

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A TrustFile is a trusted root in a file, which is read again when it has changed: that of a
// ConfigMap which is mounted changes with it. What cannot be read, or may not be trusted, leaves
// the one before in force.
type TrustFile struct {
	path string
	pins []string
	told func(error)
	now  func() time.Time

	current atomic.Pointer[Trust]

	reading sync.Mutex
	read    time.Time
	seen    []byte // what the file had
	wrong   error  // why it is not in force
}

// How often the file is looked at, and how large it may be.
const (
	trustLife = 10 * time.Second
	maxTrust  = 1 << 20
)

// OpenTrust reads the file. Where there are pins, its hash must be one of them, as sha256:…. told is
// told of each time that it has changed: with an error where it is not taken; nil hears of none.
func OpenTrust(path string, pins []string, told func(error)) (*TrustFile, error) {
	f := &TrustFile{path: path, pins: pins, told: told, now: time.Now}
	if f.told == nil {
		f.told = func(error) {}
	}
	for _, pin := range pins {
		if digest, err := hex.DecodeString(pin[min(len(pin), len(pinPrefix)):]); err != nil || len(digest) != 32 || pin[:len(pinPrefix)] != pinPrefix {
			return nil, fmt.Errorf("%q is no digest of a trusted root; write %s and 64 hexadecimal digits", pin, pinPrefix)
		}
	}
	f.look()
	if f.wrong != nil {
		return nil, f.wrong
	}
	return f, nil
}

const pinPrefix = "sha256:"

// Trust is the one in force. It looks at the file where that was done last some seconds ago.
func (f *TrustFile) Trust() *Trust {
	if f.reading.TryLock() {
		if now := f.now(); now.Sub(f.read) >= trustLife || now.Before(f.read) {
			f.look()
		}
		f.reading.Unlock()
	}
	return f.current.Load()
}

// look reads the file, and takes it if it is another than before.
func (f *TrustFile) look() {
	f.read = f.now()
	data, err := readSmall(f.path)
	if err == nil && bytes.Equal(data, f.seen) {
		return
	}
	var trust *Trust
	if err == nil {
		f.seen = data
		trust, err = f.taken(data)
	} else {
		f.seen = nil
	}
	again := err != nil && f.wrong != nil && err.Error() == f.wrong.Error()
	if f.wrong = err; err == nil {
		f.current.Store(trust)
	}
	if !again {
		f.told(err)
	}
}

// taken is the trusted root that a file has.
func (f *TrustFile) taken(data []byte) (*Trust, error) {
	if own := pinPrefix + hex.EncodeToString(sum(data)); len(f.pins) > 0 && !slices.Contains(f.pins, own) {
		return nil, fmt.Errorf("the trusted root %s is pinned, and %s is not among its pins", f.path, own)
	}
	trust, err := ReadTrust(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	return trust, nil
}

func readSmall(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxTrust+1))
	if err == nil && len(data) > maxTrust {
		err = fmt.Errorf("%s has more than %d bytes", path, maxTrust)
	}
	return data, err
}
