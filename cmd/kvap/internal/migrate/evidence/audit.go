package evidence

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/controller/audit"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/vap"
)

// A Native is a native policy that was in the cluster while the log was written.
type Native struct {
	Policy *admissionregistrationv1.ValidatingAdmissionPolicy
	// LeftOut are the namespaces that its bindings leave out.
	LeftOut []string
	// Since is when it was seen to be judged by as it is; zero where that is not known.
	Since time.Time
}

// Times say since when both sides judge by a policy as it is; zero where that is not known.
type Times struct {
	Kyverno time.Time
	Webhook time.Time // kvap's, by the rules with no native form
	// Never is why Kyverno does not judge by it at all; empty where it does.
	Never string
}

type auditNative struct {
	Native
	places []int // of the rules of its members
	text   vap.Translation
}

// Strange are native policies that the log speaks of, made by kvap or not, and that
// were not among the natives.
func (l *Ledger) Strange() []string { return slices.Sorted(maps.Keys(l.strange)) }

// An event is a line of the log, understood.
type event struct {
	*audit.Event
	failures []audit.Failure
	// whole tells that the failures are all there were: an API server before 1.37 notes
	// the first only.
	whole   bool
	webhook []webhookFinding
	heard   bool // kvap's webhook said something
	denied  *denial
}

// webhookFinding is what kvap's webhook notes.
type webhookFinding struct {
	Policy  string        `json:"policy"`
	Rule    string        `json:"rule"`
	Status  interp.Status `json:"status"`
	Message string        `json:"message"`
}

// Audit writes down what one line of an API server's audit log says. Lines that are
// not about the end of a write are passed over.
func (l *Ledger) Audit(ctx context.Context, data []byte, at string) error {
	read, err := audit.ReadEvent(data)
	if err != nil {
		return err
	}
	e := event{Event: read}
	if !e.Ends() || e.Received.Before(l.Since) {
		return nil
	}
	if err := e.read(); err != nil {
		return err
	}
	l.webhook = l.webhook || e.heard
	for _, f := range e.failures {
		if _, ok := l.natives[f.Policy]; !ok {
			l.strange[f.Policy] = true
		}
	}
	for i := range l.rows {
		if validates(l.rows[i].form) {
			l.noteEvent(i, &e, at)
		}
	}
	return l.noteMutations(ctx, &e, at)
}

func (e *event) read() (err error) {
	if e.failures, err = e.Failures(); err != nil {
		return err
	}
	e.whole = len(e.failures) != 1
	for key, text := range e.Annotations {
		if !strings.HasSuffix(key, ".webhook.kvap.dev/violations") {
			continue
		}
		var list []webhookFinding
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return fmt.Errorf("the annotation %s is not what kvap writes: %w", key, err)
		}
		e.webhook, e.heard = append(e.webhook, list...), true
	}
	e.denied = parseDenial(e.ResponseStatus.Message)
	return nil
}

// subject is the request in words.
func (e *event) subject() string {
	r := e.ObjectRef
	text := e.Verb + " " + r.Resource
	if r.Subresource != "" {
		text += "/" + r.Subresource
	}
	for _, s := range []string{r.Namespace, r.Name} {
		if s != "" {
			text += " " + s
		}
	}
	return fmt.Sprintf("%s by %s at %s", text, e.User.Username, e.Received.UTC().Format(time.RFC3339))
}
