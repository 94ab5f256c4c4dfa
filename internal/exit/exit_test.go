package exit_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kvap/kvap/internal/exit"
)

// TestRuntimeKeepsCodes: what a step below has said of the exit code stands, also where it
// was wrapped on the way; only an error without a code becomes one of the machine's.
func TestRuntimeKeepsCodes(t *testing.T) {
	t.Parallel()
	cause := errors.New("no space left")
	for _, tt := range []struct {
		name string
		err  error
		code int
	}{
		{"no code", cause, exit.CodeRuntime},
		{"usage", exit.Usage(cause), exit.CodeUsage},
		{"findings, wrapped", fmt.Errorf("a.yaml: %w", exit.Findings(cause)), exit.CodeFindings},
		{"partly, in a list", errors.Join(errors.New("first"), exit.Partly(cause)), exit.CodePartly},
		{"all has been said", exit.Partly(nil), exit.CodePartly},
	} {
		got := exit.Runtime(tt.err)
		var own *exit.Error
		if !errors.As(got, &own) || own.Code != tt.code {
			t.Errorf("%s: %v (%T), want the code %d", tt.name, got, got, tt.code)
		}
		if again := exit.Runtime(got); again != got { //nolint:errorlint // the very same
			t.Errorf("%s: said twice, it is another error: %v", tt.name, again)
		}
		if errors.Is(tt.err, cause) && !errors.Is(got, cause) {
			t.Errorf("%s: the cause is lost", tt.name)
		}
	}
	if err := exit.Runtime(nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}
