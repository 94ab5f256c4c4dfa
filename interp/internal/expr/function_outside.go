package expr

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp/syntax"
	"strings"

	"github.com/kvap/kvap/jmespath"
)

// outsideFunction is the functions whose result depends on more than their
// arguments.
func outsideFunction(f jmespath.Func) function {
	switch f {
	case jmespath.FuncImageNormalize:
		return imageNormalize
	case jmespath.FuncIsExternalURL:
		return isExternalURL
	case jmespath.FuncRandom:
		return random
	}
	return nil
}

func imageNormalize(ev *evaluator, args []any) (any, error) {
	if ev.around.NormalizeImage == nil {
		return nil, errors.New("references of images are not read here")
	}
	return ev.around.NormalizeImage(args[0].(string))
}

// isExternalURL tells whether a URL leads neither to a loopback address nor to a
// private one.
func isExternalURL(ev *evaluator, args []any) (any, error) {
	u, err := url.Parse(args[0].(string))
	if err != nil {
		return nil, err
	}
	if address, err := netip.ParseAddr(u.Hostname()); err == nil {
		return isExternal(address), nil
	}
	if ev.around.World == nil {
		return nil, errors.New("names are not resolved here")
	}
	addresses, err := ev.around.World.Resolve(ev.ctx, u.Hostname())
	if err != nil {
		return nil, err
	}
	for _, address := range addresses {
		if !isExternal(address) {
			return false, nil
		}
	}
	return true, nil
}

func isExternal(address netip.Addr) bool {
	address = address.Unmap()
	return !address.IsLoopback() && !address.IsPrivate()
}

// maxRepeat is how often at most random repeats what has no upper bound.
const maxRepeat = 10

// random is a text that a regular expression matches.
func random(ev *evaluator, args []any) (any, error) {
	if args[0] == "" {
		return nil, errors.New("the regular expression is empty")
	}
	if ev.around.World == nil {
		return nil, errors.New("there is no source of random numbers here")
	}
	re, err := syntax.Parse(args[0].(string), syntax.Perl)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	if err := ev.generate(&b, re); err != nil {
		return nil, err
	}
	return b.String(), nil
}

// generate writes a text that matches re. Conditions on what stands around it, as
// ^ and \b, are passed over.
func (ev *evaluator) generate(b *strings.Builder, re *syntax.Regexp) error {
	if err := ev.spend(1); err != nil {
		return err
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		if len(re.Rune) == 0 {
			return errors.New("the regular expression matches nothing")
		}
		b.WriteRune(ev.randomRune(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte(byte(' ' + ev.around.World.Random('~'-' '+1)))
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			if err := ev.generate(b, sub); err != nil {
				return err
			}
		}
	case syntax.OpAlternate:
		return ev.generate(b, re.Sub[ev.around.World.Random(len(re.Sub))])
	case syntax.OpStar:
		return ev.repeat(b, re.Sub[0], 0, maxRepeat)
	case syntax.OpPlus:
		return ev.repeat(b, re.Sub[0], 1, maxRepeat)
	case syntax.OpQuest:
		return ev.repeat(b, re.Sub[0], 0, 1)
	case syntax.OpRepeat:
		most := re.Max
		if most < 0 {
			most = re.Min + maxRepeat
		}
		return ev.repeat(b, re.Sub[0], re.Min, most)
	case syntax.OpNoMatch:
		return errors.New("the regular expression matches nothing")
	default:
	}
	return nil
}

func (ev *evaluator) repeat(b *strings.Builder, re *syntax.Regexp, least, most int) error {
	for range least + ev.around.World.Random(most-least+1) {
		if err := ev.generate(b, re); err != nil {
			return err
		}
	}
	return nil
}

// randomRune is one of a class, which lists pairs of first and last characters.
// Classes that reach far beyond ASCII, as [^a] does, give the ASCII ones they
// have.
func (ev *evaluator) randomRune(class []rune) rune {
	limit := rune(0x10ffff)
	if class[0] <= '~' {
		limit = '~'
	}
	n := 0
	for i := 0; i < len(class) && class[i] <= limit; i += 2 {
		n += int(min(class[i+1], limit)-class[i]) + 1
	}
	n = ev.around.World.Random(n)
	for i := 0; ; i += 2 {
		size := int(min(class[i+1], limit)-class[i]) + 1
		if n < size {
			return class[i] + rune(n)
		}
		n -= size
	}
}
