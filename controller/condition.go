package controller

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/api/v1alpha1"
)

// A conditionSet sets the conditions of one policy. The tree is: Ready, which is true where
// all the others are, in the order in which they are set.
type conditionSet struct {
	generation int64
	conditions []metav1.Condition
}

// maxMessage is about half of what the API server takes as a message.
const maxMessage = 16 << 10

func (m *conditionSet) set(condition string, status metav1.ConditionStatus, reason, format string, args ...any) {
	message := format
	if len(args) > 0 {
		message = fmt.Sprintf(format, args...)
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	m.conditions = append(m.conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: message, ObservedGeneration: m.generation,
	})
}

func (m *conditionSet) yes(condition, reason, format string, args ...any) {
	m.set(condition, metav1.ConditionTrue, reason, format, args...)
}

func (m *conditionSet) no(condition, reason, format string, args ...any) {
	m.set(condition, metav1.ConditionFalse, reason, format, args...)
}

func (m *conditionSet) unknown(condition, reason, format string, args ...any) {
	m.set(condition, metav1.ConditionUnknown, reason, format, args...)
}

// ready follows from the others: the first that is false, else the first that is
// unknown, says why it is not true.
func (m *conditionSet) ready() {
	for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
		i := slices.IndexFunc(m.conditions, func(c metav1.Condition) bool { return c.Status == status })
		if i >= 0 {
			m.set(v1alpha1.ConditionReady, status, m.conditions[i].Reason, "%s: %s", m.conditions[i].Type, m.conditions[i].Message)
			return
		}
	}
	m.yes(v1alpha1.ConditionReady, "Ready", "every rule is where it should be")
}

// withTimes gives conditions the times of their last transitions.
func withTimes(now metav1.Time, before, conditions []metav1.Condition) []metav1.Condition {
	for i := range conditions {
		c := &conditions[i]
		c.LastTransitionTime = now
		if old := meta.FindStatusCondition(before, c.Type); old != nil && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
	}
	return conditions
}
