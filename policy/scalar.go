package policy

import (
	"math"
	"strconv"
	"strings"
)

// kubectl and the API server do not read YAML 1.2: sigs.k8s.io/yaml resolves
// untagged plain scalars by YAML 1.1, with yes, no, on, off, y and n as booleans,
// 0777, 0o777, 0x1f, 0b101 and 1_000 as integers, and dates as strings. The value
// is then written as JSON, where 5.0 becomes 5, and read by the decoder of the
// API machinery, which makes an integer of every number without fraction and
// exponent that fits int64, and a float64 of all others. So 5.0 and 1e3 end as the
// integers 5 and 1000, in YAML and in JSON alike: a manifest is encoded anew on
// its way to the server. TestScalarsAsKubectl compares with those libraries.

// resolve gives a plain scalar its type in YAML; settle gives a value its type in
// JSON.
func resolve(n *Node, text string) {
	n.Kind, n.Str = String, text
	switch text {
	case "", "~", "null", "Null", "NULL":
		n.Kind, n.Str = Null, ""
		return
	case "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		n.Kind, n.Str, n.Bool = Bool, "", true
		return
	case "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		n.Kind, n.Str = Bool, ""
		return
	case ".nan", ".NaN", ".NAN":
		n.Kind, n.Str, n.Float = Float, "", math.NaN()
		return
	case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF":
		n.Kind, n.Str, n.Float = Float, "", math.Inf(1)
		return
	case "-.inf", "-.Inf", "-.INF":
		n.Kind, n.Str, n.Float = Float, "", math.Inf(-1)
		return
	}
	switch c := text[0]; {
	case c == '.':
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			n.Kind, n.Str, n.Float = Float, "", f
		}
	case c == '+' || c == '-' || '0' <= c && c <= '9':
		numeric(n, text)
	}
}

// numeric resolves a scalar that starts like a number.
func numeric(n *Node, text string) {
	if isTimestamp(text) {
		return
	}
	plain := strings.ReplaceAll(text, "_", "")
	if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
		n.Kind, n.Str, n.Int = Int, "", i
		return
	}
	if u, err := strconv.ParseUint(plain, 0, 64); err == nil {
		n.Kind, n.Str, n.Float = Float, "", float64(u)
		return
	}
	if signed, ok := strings.CutPrefix(plain, "0b"); ok { // a sign may stand behind it
		if i, err := strconv.ParseInt(signed, 2, 64); err == nil {
			n.Kind, n.Str, n.Int = Int, "", i
		}
		return
	}
	if !decimal(plain) {
		return
	}
	if f, err := strconv.ParseFloat(plain, 64); err == nil {
		n.Kind, n.Str, n.Float = Float, "", f
	}
}

// settle makes of a float what the API server makes of it after a trip through
// JSON: an integer, if its text is one.
func settle(n *Node) {
	if n.Kind != Float || math.Abs(n.Float) >= 1e21 {
		return // encoding/json writes an exponent from here on
	}
	if i, err := strconv.ParseInt(strconv.FormatFloat(n.Float, 'f', -1, 64), 10, 64); err == nil {
		n.Kind, n.Int, n.Float = Int, i, 0
	}
}

func finite(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }

// isTimestamp knows dates only as far as needed: with no separator after the year
// a number could still be read, with one it cannot.
func isTimestamp(text string) bool {
	return len(text) > 4 && text[4] == '-' && strings.Trim(text[:4], "0123456789") == ""
}

// decimal tells whether text has the form of a YAML 1.1 float:
// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
func decimal(text string) bool {
	s := strings.TrimLeft(text, "+-")
	if len(text)-len(s) > 1 {
		return false
	}
	rest := strings.TrimLeft(s, "0123456789")
	whole := len(s) - len(rest)
	if fraction, ok := strings.CutPrefix(rest, "."); ok {
		rest = strings.TrimLeft(fraction, "0123456789")
		if whole == 0 && len(rest) == len(fraction) {
			return false
		}
	} else if whole == 0 {
		return false
	}
	if rest == "" {
		return true
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return false
	}
	rest = rest[1:]
	if rest != "" && (rest[0] == '+' || rest[0] == '-') {
		rest = rest[1:]
	}
	return rest != "" && strings.Trim(rest, "0123456789") == ""
}

// article is a kind with its article, for messages.
func article(k NodeKind) string {
	switch k {
	case Null:
		return "null"
	case Int:
		return "an integer"
	}
	return "a " + k.String()
}
