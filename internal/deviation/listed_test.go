package deviation_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/kvap/kvap/internal/deviation"
)

// The table of docs/deviations.md counts from 1, and whatever names a deviation by
// its number, in the code or in a test, means one of its rows.
func TestNumbersAreListed(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "deviations.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(string(text), -1)
	for i, row := range rows {
		if row[1] != strconv.Itoa(i+1) {
			t.Errorf("row %d has the number %s", i+1, row[1])
		}
	}
	listed := func(where, number string) {
		if n, err := strconv.Atoi(number); err != nil || n < 1 || n > len(rows) {
			t.Errorf("%s: deviation %s is in no row of docs/deviations.md", where, number)
		}
	}
	for _, l := range deviation.List() {
		listed("internal/deviation", strconv.Itoa(l.Number))
	}
	named := regexp.MustCompile(`[dD]eviations?[ ]+((?:\d+)(?:(?:, | and )\d+)*)`)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range named.FindAllSubmatch(source, -1) {
			for _, number := range regexp.MustCompile(`\d+`).FindAllString(string(m[1]), -1) {
				listed(path, number)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
