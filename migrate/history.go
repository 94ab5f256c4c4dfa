package migrate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/api/v1alpha1"
)

// maxSteps is how many steps a record keeps.
const maxSteps = 100

// NewRecord is the record of a policy to which nothing was done. name is that of its
// PolicyTranslation too.
func NewRecord(name string, source v1alpha1.PolicyReference) *v1alpha1.Migration {
	return &v1alpha1.Migration{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "Migration"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.MigrationSpec{Source: source},
		Status:     v1alpha1.MigrationStatus{Stage: v1alpha1.StageNone},
	}
}

// Digest tells one version of a policy from others by its spec, without what a
// migration writes into that: a comparison is about a digest.
func Digest(policy map[string]any) string {
	data, err := json.Marshal(specAsWritten(policy))
	if err != nil {
		panic(err) // what came as JSON goes as JSON
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// NoComparison is why a policy is not to be enforced: there is no comparison that
// speaks for it.
type NoComparison struct{ why string }

// Error says why.
func (e *NoComparison) Error() string { return e.why }

// Speaks tells whether a comparison speaks for a policy of the digest: it is about
// that, no older than maxAge, and clean. The error is a NoComparison.
func Speaks(c *v1alpha1.Comparison, digest string, now time.Time, maxAge time.Duration) error {
	no := func(format string, args ...any) error { return &NoComparison{fmt.Sprintf(format, args...)} }
	if c == nil {
		return no("it was never compared")
	}
	age := now.Sub(c.At.Time)
	switch {
	case c.Digest != digest:
		return no("it has changed since it was compared at %s", c.At.UTC().Format(time.RFC3339))
	case age > maxAge:
		return no("its comparison is of %s, which is more than %s ago", c.At.UTC().Format(time.RFC3339), maxAge)
	case age < -time.Hour:
		return no("its comparison is of %s, which is in the future", c.At.UTC().Format(time.RFC3339))
	case !c.Clean:
		return no("the last comparison was not clean: %s", c.Message)
	}
	return nil
}

// Note adds a step to a record. The oldest goes where there are too many.
func Note(m *v1alpha1.Migration, step v1alpha1.MigrationStep) {
	m.Status.Steps = append(m.Status.Steps, step)
	if over := len(m.Status.Steps) - maxSteps; over > 0 {
		m.Status.Steps = slices.Delete(m.Status.Steps, 0, over)
	}
}
