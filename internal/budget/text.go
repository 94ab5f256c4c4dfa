package budget

import (
	"fmt"
	"strings"
	"sync"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
)

// longestText is how long a text may be that CEL makes: what the API server lets an
// expression pay for, at ten characters for a unit. Where a type is not known it counts
// one for any text: object.metadata.name + object.metadata.name, and so on.
const longestText = 10_000_000

// Texts has programs err where a text would become too long, before it is made.
func Texts() celgo.ProgramOption {
	made := sync.OnceValues(textFunctions)
	return celgo.CustomDecoratorV2(func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		call, ok := i.(interpreter.InterpretableCall)
		if !ok {
			return i, nil
		}
		lengthOf := lengthsOf(call.Function())
		if lengthOf == nil {
			return i, nil
		}
		do := add
		if call.Function() != operators.Add {
			byName, err := made()
			if err != nil {
				return nil, err
			}
			if do = byName[call.OverloadID()]; do == nil { // of a type that is not known
				do = byName[call.Function()]
			}
		}
		if do == nil {
			return i, nil
		}
		return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
			if lengthOf(args) > longestText {
				return types.WrapErr(fmt.Errorf("the text has more than %d characters", longestText))
			}
			return do(args...)
		}), nil
	})
}

func add(args ...ref.Val) ref.Val {
	if a, ok := args[0].(traits.Adder); ok {
		return a.Add(args[1])
	}
	return types.MaybeNoSuchOverloadErr(args[0])
}

// textFunctions are the functions that make texts, by their names and those of their
// overloads.
func textFunctions() (map[string]functions.FunctionOp, error) {
	env, err := celgo.NewEnv(ext.Strings())
	if err != nil {
		return nil, err
	}
	made := map[string]functions.FunctionOp{}
	for _, name := range []string{"replace", "join", "format"} {
		bindings, err := env.Functions()[name].Bindings()
		if err != nil {
			return nil, err
		}
		for _, b := range bindings {
			made[b.Operator] = anyNumber(b)
		}
	}
	return made, nil
}

// anyNumber is a binding as a function of any number of arguments.
func anyNumber(b *functions.Overload) functions.FunctionOp {
	return func(args ...ref.Val) ref.Val {
		switch {
		case len(args) == 1 && b.Unary != nil:
			return b.Unary(args[0])
		case len(args) == 2 && b.Binary != nil:
			return b.Binary(args[0], args[1])
		case b.Function != nil:
			return b.Function(args...)
		}
		return types.NoSuchOverloadErr()
	}
}

// lengthsOf is how long a text becomes at most that a function makes; nil for one that
// makes none.
func lengthsOf(function string) func(args []ref.Val) int {
	switch function {
	case operators.Add:
		return func(args []ref.Val) int {
			if _, isList := args[0].(traits.Lister); isList { // which share what they have
				return 0
			}
			return lengthOfAll(args, longestText)
		}
	case "format":
		return func(args []ref.Val) int { return lengthOfAll(args, longestText) }
	case "join":
		return func(args []ref.Val) int {
			sum := lengthOfAll(args, longestText)
			if list, ok := args[0].(traits.Lister); ok && len(args) > 1 {
				size, _ := list.Size().(types.Int)
				sum += int(size) * lengthOfAll(args[1:], longestText)
			}
			return sum
		}
	case "replace":
		return func(args []ref.Val) int {
			text, _ := args[0].(types.String)
			from, _ := args[1].(types.String)
			to, _ := args[2].(types.String)
			return len(text) + strings.Count(string(text), string(from))*(len(to)-len(from))
		}
	}
	return nil
}

// lengthOfAll is how long values are one after the other; it stops counting after most.
func lengthOfAll(values []ref.Val, most int) (sum int) {
	for _, v := range values {
		sum += sizeOf(v, 1, most)
	}
	return sum
}
