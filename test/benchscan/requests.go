package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"strings"
)

// requests are the controller's, by what they are about: the objects, the reports, or others. Those
// that renew its lease are left out.
type requests struct {
	pages, gets, watches int // of objects
	reports              int // written
	writes, reads        int // others
}

// since counts the requests that were answered since the last question, by the audit log.
func (b *bench) since() (n requests, err error) {
	f, err := os.Open(b.plane.AuditLog())
	if err != nil {
		return n, err
	}
	defer f.Close()
	if _, err := f.Seek(b.audited, io.SeekStart); err != nil {
		return n, err
	}
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return n, nil // the rest of a line comes later
		}
		if err != nil {
			return n, err
		}
		b.audited += int64(len(line))
		if err := n.add(line); err != nil {
			return n, err
		}
	}
}

func (n *requests) add(line []byte) error {
	var e struct {
		Verb, UserAgent, RequestURI string
		ObjectRef                   struct{ Resource, APIGroup string }
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	resource := e.ObjectRef.Resource
	object := e.ObjectRef.APIGroup == "" && (resource == "configmaps" || resource == "pods" || resource == "services")
	reads := e.Verb == "get" || e.Verb == "list" || e.Verb == "watch"
	switch {
	case e.UserAgent != "kvap-controller", resource == "leases":
	case object && e.Verb == "list":
		n.pages++
	case object && e.Verb == "get":
		n.gets++
	case object && e.Verb == "watch":
		n.watches++
	case e.ObjectRef.APIGroup == reports().Group && !reads:
		n.reports++
	case reads || strings.Contains(e.RequestURI, "dryRun="):
		n.reads++
	default:
		n.writes++
	}
	return nil
}
