package registration

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/kvap/kvap/policy"
)

// maxConditions is how many match conditions a policy may have: the API server takes
// 64, of which some are ours.
const maxConditions = 60

// unacceptable says why the API server would refuse match conditions; "" if it would
// not. It refuses a configuration as a whole, so that one policy, even of a namespace,
// would keep those of all others from being written.
func unacceptable(conditions []policy.CEL) string {
	if len(conditions) > maxConditions {
		return fmt.Sprintf("it has %d match conditions; %d are allowed", len(conditions), maxConditions)
	}
	compiler := plugincel.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	names := map[string]bool{}
	for _, c := range conditions {
		if wrong := validation.IsQualifiedName(c.Name); len(wrong) > 0 {
			return fmt.Sprintf("the match condition %q: %s", c.Name, wrong[0])
		}
		if names[c.Name] || slices.Contains([]string{excludedGroupsName, machineryName, ownName}, c.Name) {
			return fmt.Sprintf("two match conditions are named %q", c.Name)
		}
		names[c.Name] = true
		result := compiler.CompileCELExpression(&matchconditions.MatchCondition{Name: c.Name, Expression: c.Expression},
			plugincel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions)
		if result.Error != nil {
			return fmt.Sprintf("the match condition %q: %s", c.Name, result.Error.Detail)
		}
	}
	return ""
}
