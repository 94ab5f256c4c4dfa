package apiserver

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// A StatusChecker says what kube-controller-manager of a release writes into
// status.typeChecking of policies. It is TypeChecker of
// k8s.io/apiserver/pkg/admission/plugin/policy/validating, save that it makes the
// environment for a kind once, and not for each expression; that it knows the
// functions of its release; and that types are not called by the clock.
type StatusChecker struct{ types *typedEnvs }

// NewStatusChecker makes a checker for the kinds of a set. It is for any number of
// policies, one after the other.
func NewStatusChecker(set *schema.Set, release cel.Release) *StatusChecker {
	base := environment.MustBaseEnvSet(version.MajorMinor(1, uint(release))).NewExpressionsEnv() // of what this release knows, which to it is all there is
	return &StatusChecker{newTypedEnvs(release, base, set.StatusResolver(), set.RESTMapper())}
}

// Check is what is written into the status, in its order.
func (c *StatusChecker) Check(p *admissionregistrationv1.ValidatingAdmissionPolicy) []TypeWarning {
	var found typeProblems
	for _, on := range c.types.of(p) {
		for _, v := range p.Spec.Variables {
			on.declare(v) // one with an error is dynamic, without a word
		}
		found.shown(on, p)
	}
	return found.warnings(false)
}
