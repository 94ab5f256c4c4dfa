package snippets

import "testing"

func TestUnder(t *testing.T) {
	const page = "# A\n```sh\n# no heading\none\n```\ntext\n```yaml\na: b\n```\n```sh\ntwo\n```\n## B\n```sh\nthree\n```\n"
	for _, c := range []struct{ heading, language, want string }{
		{"A", "sh", "# no heading\none\ntwo\n"},
		{"A", "yaml", "a: b\n"},
		{"B", "sh", "three\n"},
		{"B", "yaml", ""},
	} {
		if got := Under(page, c.heading, c.language); got != c.want {
			t.Errorf("%s, %s: got %q, want %q", c.heading, c.language, got, c.want)
		}
	}
}
