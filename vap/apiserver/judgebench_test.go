package apiserver

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/vap"
)

func BenchmarkReview(b *testing.B) {
	o, _ := vap.Emit(teamDraft(), vap.EmitOptions{})
	j, err := NewJudge([]*admissionregistrationv1.ValidatingAdmissionPolicy{o.Policy}, o.Bindings, JudgeOptions{})
	if err != nil {
		b.Fatal(err)
	}
	r := podRequest("CREATE", pod, "")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := j.Review(b.Context(), r, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewJudge(b *testing.B) {
	o, _ := vap.Emit(teamDraft(), vap.EmitOptions{})
	for b.Loop() {
		if _, err := NewJudge([]*admissionregistrationv1.ValidatingAdmissionPolicy{o.Policy}, o.Bindings, JudgeOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
