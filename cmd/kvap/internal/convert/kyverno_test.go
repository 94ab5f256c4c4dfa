package convert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/translate"
)

// Nobody who stays with Kyverno hears of who would run a rule that kvap's webhook gets otherwise.
func TestLeftToKyverno(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../../fixtures/*/policy.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	choices, err := DefaultFlags().Choices()
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		done := Compile([]input.Source{{Name: file, Data: data}}, choices.ForKyverno("1.19"))
		for _, r := range done.Rules {
			if r.Target == translate.Native {
				continue
			}
			left++
			for _, word := range []string{"webhook will", "controller will", "leave this rule with"} {
				if strings.Contains(r.Reason, word) {
					t.Errorf("%s: %s: %s", file, r.Name(), r.Reason)
				}
			}
		}
	}
	if left < 50 {
		t.Errorf("only %d rules are left", left)
	}
}
