package interp

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kvap/kvap/diag"
)

// ruleMessage is the rule's message with its variables filled in. Kyverno crashes
// on one that does not resolve to a string; here it is an error (deviation 4).
func (val *validation) ruleMessage() (string, error) {
	return val.vars.fillString(val.rule.message)
}

// patternFailure is the message for an object that a pattern does not hold of.
func (val *validation) patternFailure(path string) (string, error) {
	message, err := val.ruleMessage()
	name := val.rule.Name
	switch {
	case errors.As(err, new(notText)):
		return "", err
	case err != nil:
		return fmt.Sprintf("validation error: variables substitution error in rule %s execution error: %v", name, err), nil
	case message == "":
		return fmt.Sprintf("validation error: rule %s failed at path %s", name, path), nil
	}
	return fmt.Sprintf("validation error: %s rule %s failed at path %s", withStop(message), name, path), nil
}

// patternError is the message for a pattern that could not be held to an object.
func (val *validation) patternError(text string) string {
	message, err := val.ruleMessage()
	name := val.rule.Name
	switch {
	case err != nil:
		return fmt.Sprintf("validation error: variables substitution error in rule %s execution error: %v", name, err)
	case message == "":
		return fmt.Sprintf("validation error: rule %s execution error: %s", name, text)
	}
	return fmt.Sprintf("validation error: %s rule %s execution error: %s", withStop(message), name, text)
}

// anyPatternFailure is the message for an object that none of the patterns hold
// of.
func (val *validation) anyPatternFailure(failures []string) (string, error) {
	message, err := val.ruleMessage()
	list := strings.Join(failures, " ")
	switch {
	case errors.As(err, new(notText)):
		return "", err
	case err != nil:
		return fmt.Sprintf("validation error: variables substitution error in rule %s execution error: %v", val.rule.Name, err), nil
	case message == "":
		return "validation error: " + list, nil
	}
	return fmt.Sprintf("validation error: %s %s", withStop(message), list), nil
}

func withStop(message string) string {
	if strings.HasSuffix(message, ".") {
		return message
	}
	return message + "."
}

// denyMessage is the rule's message and those of the conditions that denied. Where
// they cannot be filled in, the conditions' own are shown as written.
func (val *validation) denyMessage(conditions string) string {
	written := joinMessages(val.rule.Validate.Message.Value, conditions)
	if written == "" {
		return fmt.Sprintf("validation error: rule %s failed", val.rule.Name)
	}
	t := val.rule.message
	if conditions != "" {
		t = readText(written, diag.Pos{})
	}
	value, err := val.vars.fillText(t)
	if err != nil {
		return conditions
	}
	if s, ok := value.Data.(string); ok {
		return s
	}
	return "the produced message didn't resolve to a string, check your policy definition."
}
