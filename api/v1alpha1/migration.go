package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Migration is how far one policy has come on its way from Kyverno to kvap, and all
// that is needed to go back. `kvap migrate` writes it; it stays when the policy is
// deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=kmig,categories=kvap
// +kubebuilder:printcolumn:name="STAGE",type=string,JSONPath=`.status.stage`
// +kubebuilder:printcolumn:name="DOING",type=string,JSONPath=`.status.doing.verb`
// +kubebuilder:printcolumn:name="WAY",type=string,JSONPath=`.status.way`
// +kubebuilder:printcolumn:name="CLEAN",type=boolean,JSONPath=`.status.comparison.clean`
// +kubebuilder:printcolumn:name="COMPARED",type=date,JSONPath=`.status.comparison.at`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type Migration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec MigrationSpec `json:"spec"`
	// Status is written with the spec: an intention and what came of it are one
	// object, so that whoever reads it reads both as of one moment.
	// +optional
	Status MigrationStatus `json:"status,omitempty"`
}

// MigrationList is a list of Migrations.
//
// +kubebuilder:object:root=true
type MigrationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Migration `json:"items"`
}

// MigrationSpec names the policy.
type MigrationSpec struct {
	// +required
	Source PolicyReference `json:"source"`
}

// MigrationStage is where a policy stands.
//
// +kubebuilder:validation:Enum=none;shadow;enforced;adopted
type MigrationStage string

// The stages, in the order in which they come.
const (
	// StageNone is a policy that Kyverno alone judges by.
	StageNone MigrationStage = "none"
	// StageShadow is one that Kyverno judges by, and kvap beside it without effect.
	StageShadow MigrationStage = "shadow"
	// StageEnforced is one that kvap enforces, and Kyverno no longer does.
	StageEnforced MigrationStage = "enforced"
	// StageAdopted is one that kvap enforces from a policy of its own kind.
	StageAdopted MigrationStage = "adopted"
)

// MigrationWay is how Kyverno is kept from judging by a policy.
//
// +kubebuilder:validation:Enum=admission;replace;remove
type MigrationWay string

// The ways, the lightest first.
const (
	// WayAdmission leaves the policy where it is, with admission switched off.
	WayAdmission MigrationWay = "admission"
	// WayReplace leaves Kyverno those rules that nothing else carries out; a policy of
	// kvap.dev has the others.
	WayReplace MigrationWay = "replace"
	// WayRemove removes the policy; a policy of kvap.dev has its spec.
	WayRemove MigrationWay = "remove"
)

// MigrationStatus is how far the policy is.
type MigrationStatus struct {
	Stage MigrationStage `json:"stage,omitempty"`
	// Doing is what is under way. It is written before anything is done, and removed
	// when all is; where a process was killed, the same verb goes on from there, and
	// rollback goes back from there.
	Doing *MigrationStep `json:"doing,omitempty"`
	Way   MigrationWay   `json:"way,omitempty"`
	// Original is the policy as it was before anything was done.
	Original *LastGood `json:"original,omitempty"`
	// Steps are what was done, the latest last.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Steps []MigrationStep `json:"steps,omitempty"`
	// Comparison is the last that was made.
	Comparison *Comparison `json:"comparison,omitempty"`
}

// Shadows tells that kvap judges beside Kyverno by the policy, without effect, where the
// policy itself names no mode.
func (s MigrationStatus) Shadows() bool {
	return s.Stage == StageShadow || s.Doing != nil && s.Doing.To == StageShadow
}

// MigrationStep is something that was done to a policy.
type MigrationStep struct {
	// Verb is that of `kvap migrate`.
	// +required
	Verb string `json:"verb"`
	// +required
	At metav1.Time `json:"at"`
	// To is the stage that it leads to.
	To MigrationStage `json:"to,omitempty"`
	// Why is what the user gave as a reason, where one was needed.
	Why string `json:"why,omitempty"`
	// What is what was done, in words.
	What string `json:"what,omitempty"`
}

// Comparison is what comparing kvap's verdicts with Kyverno's has shown.
type Comparison struct {
	// +required
	At metav1.Time `json:"at"`
	// Digest is of the policy's spec that it is about.
	// +required
	Digest string `json:"digest"`
	// Clean tells that something was seen of each rule, and nothing on which the two differ.
	Clean bool `json:"clean"`
	// Evidence is what was looked at, by source, in the order of their names.
	// +listType=map
	// +listMapKey=source
	Evidence []Evidence `json:"evidence,omitempty"`
	// Message is the first difference, or why there is little evidence.
	Message string `json:"message,omitempty"`
}

// Evidence is what one source has shown of a policy.
type Evidence struct {
	// Source is objects, reports, shadow, requests, audit or verify.
	// +required
	Source    string `json:"source"`
	Requests  int64  `json:"requests"`
	Agreed    int64  `json:"agreed"`
	Disagreed int64  `json:"disagreed"`
}

const (
	// HistoryKey is the annotation of a policy that says in short what was done to it.
	HistoryKey = "kvap.dev/history"
	// KyvernoKey is the annotation of a policy that is "off" where admission is switched
	// off in the spec for Kyverno's sake only: kvap judges as if it were on.
	KyvernoKey = "kvap.dev/kyverno"
	// KyvernoOff is its value where all of it is.
	KyvernoOff = "off"
	// KyvernoSome is its value where Kyverno has only those rules left that nothing
	// else carries out.
	KyvernoSome = "some"
	// OrphanedKey is the annotation of a policy that names the generate rules, as a list in
	// JSON, in which orphanDownstreamOnPolicyDelete is true for the migration's sake only.
	OrphanedKey = "kvap.dev/orphaned"
)
