package interp

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// A glob is a pattern of images: * is any text, ? any character, [a-z] one of some, [!a-z] one of
// the others, and {a,b} either. It is kept as its alternatives.
type glob struct{ alternatives []pattern }

type pattern struct {
	whole *regexp.Regexp
	// repository is it without the tag, which an image has that is named by its digest; nobody
	// knows which.
	repository *regexp.Regexp
}

// maxAlternatives bounds what {a,b}{c,d} amounts to.
const maxAlternatives = 100

func readGlob(text string) (*glob, error) {
	plain, err := alternatives(text)
	if err != nil {
		return nil, fmt.Errorf("the glob %q: %w", text, err)
	}
	out := &glob{}
	for _, one := range spelled(plain) {
		var p pattern
		if p.whole, err = globRegexp(one); err != nil {
			return nil, fmt.Errorf("the glob %q: %w", text, err)
		}
		if p.repository, err = globRegexp(withoutTag(one)); err != nil {
			p.repository = p.whole
		}
		out.alternatives = append(out.alternatives, p)
	}
	return out, nil
}

// alternatives are a pattern with each choice of its braces made.
func alternatives(text string) ([]string, error) {
	at := strings.IndexByte(text, '{')
	if at < 0 {
		return []string{text}, nil
	}
	depth, from := 0, at+1
	var choices []string
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '{':
			depth++
		case ',':
			if depth == 1 {
				choices, from = append(choices, text[from:i]), i+1
			}
		case '}':
			if depth--; depth > 0 {
				continue
			}
			var out []string
			for _, choice := range append(choices, text[from:i]) {
				more, err := alternatives(text[:at] + choice + text[i+1:])
				if err != nil {
					return nil, err
				}
				if out = append(out, more...); len(out) > maxAlternatives {
					return nil, fmt.Errorf("it has more than %d alternatives", maxAlternatives)
				}
			}
			return out, nil
		}
	}
	return nil, errors.New("a { has no }")
}

// globRegexp is a pattern without braces.
func globRegexp(text string) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '*':
			b.WriteString(`.*`)
		case '?':
			b.WriteString(`.`)
		case '[':
			end := strings.IndexByte(text[i:], ']')
			if end < 2 {
				return nil, errors.New("a [ has no ]")
			}
			class := strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`).Replace(text[i+1 : i+end])
			if rest, not := strings.CutPrefix(class, "!"); not {
				class = "^" + rest
			}
			b.WriteString("[" + class + "]")
			i += end
		case '\\':
			if i++; i == len(text) {
				return nil, errors.New(`it ends in \`)
			}
			b.WriteString(regexp.QuoteMeta(text[i : i+1]))
		default:
			b.WriteString(regexp.QuoteMeta(text[i : i+1]))
		}
	}
	b.WriteString(`\z`)
	return regexp.Compile(b.String())
}

// matches tells whether the pattern means an image, in any spelling.
func (g *glob) matches(text string, i image) bool {
	for _, p := range g.alternatives {
		if p.whole.MatchString(text) {
			return true
		}
		for _, at := range i.repositories() {
			for _, spelling := range i.spellings(at) {
				if p.whole.MatchString(spelling) {
					return true
				}
			}
			if i.digest != "" && p.repository.MatchString(at) {
				return true
			}
		}
	}
	return false
}

// asWritten is the image in a repository with the tag and the digest that it has.
func (i image) asWritten(repository string) string {
	if i.tag != "" {
		repository += ":" + i.tag
	}
	if i.digest != "" {
		repository += "@" + i.digest
	}
	return repository
}

// selects tells whether the policy is about an image: any glob or expression will do, for any
// spelling. Without any it is about all.
func (f *imageForm) selects(ctx context.Context, text string, i image) (bool, error) {
	if len(f.References) == 0 {
		return true, nil
	}
	for _, g := range f.globs {
		if g.matches(text, i) {
			return true, nil
		}
	}
	for _, program := range f.references {
		for _, spelling := range append([]string{text}, f.spellings(i)...) {
			out, err := celScope{"ref": spelling}.eval(ctx, program)
			if err != nil {
				return false, err
			}
			if out == types.True {
				return true, nil
			}
		}
	}
	return false, nil
}

func (f *imageForm) spellings(i image) (out []string) {
	for _, at := range i.repositories() {
		out = append(out, i.asWritten(at))
	}
	return out
}

// referenceEnvironment is what expressions about ref are compiled with. It depends on nothing.
var referenceEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(referenceNames()...)
})
