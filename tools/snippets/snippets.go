package snippets

import "strings"

// A Block is a code block of a page.
type Block struct {
	Heading  string // the nearest one above
	Language string // "sh" of ```sh
	Text     string
}

// Read are the blocks of a page.
func Read(page string) (blocks []Block) {
	heading, inside := "", false
	for line := range strings.Lines(page) {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case inside && isFence:
			inside = false
		case inside:
			blocks[len(blocks)-1].Text += line
		case isFence:
			inside = true
			blocks = append(blocks, Block{Heading: heading, Language: strings.TrimSpace(fence)})
		case strings.HasPrefix(line, "#"):
			heading = strings.TrimSpace(strings.TrimLeft(line, "#"))
		}
	}
	return blocks
}

// Under is the text of all blocks of a language below a heading, one behind the other.
func Under(page, heading, language string) string {
	var b strings.Builder
	for _, block := range Read(page) {
		if block.Heading == heading && block.Language == language {
			b.WriteString(block.Text)
		}
	}
	return b.String()
}
