package manual

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestPages(t *testing.T) {
	root := &cobra.Command{Use: "prog", Short: "Does things", Long: "It does.\n\n.so /etc/passwd\n\n  indented"}
	run := func(*cobra.Command, []string) {}
	verb := &cobra.Command{Use: "verb PATH...", Short: `Takes a\b`, Run: run}
	verb.Flags().StringP("output", "o", "yaml", "where it goes, a `DIR`")
	root.AddCommand(verb, &cobra.Command{Use: "secret", Hidden: true, Run: run})
	pages := Pages(root, "prog 1.0")
	if len(pages) != 2 || pages[0].File != "prog.1" || pages[1].File != "prog-verb.1" {
		t.Fatalf("%+v", pages)
	}
	for _, c := range []struct {
		page int
		want string
	}{
		{0, ".TH \"PROG\" \"1\" \"\" \"prog 1.0\" \"Manual of prog\"\n.SH NAME\nprog \\- Does things\n"},
		{0, "\n\\&.so /etc/passwd\n.PP\n.nf\n  indented\n.fi\n"},
		{0, ".SH SEE ALSO\nprog\\-verb(1)\n"},
		{1, "Takes a\\eb\n.SH SYNOPSIS\n.B prog verb PATH... [flags]\n"},
		{1, ".TP\n.B \\-o, \\-\\-output DIR\nwhere it goes, a DIR (default yaml)\n"},
		{1, ".SH SEE ALSO\nprog(1)\n"},
	} {
		if !strings.Contains(pages[c.page].Text, c.want) {
			t.Errorf("page %d has no %q:\n%s", c.page, c.want, pages[c.page].Text)
		}
	}
}
