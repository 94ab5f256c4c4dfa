package registration

import "testing"

func TestTable(t *testing.T) {
	table := Table{
		{Version: "v1", Kind: "Pod", Plural: "pods"}, {Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments"},
		{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler", Plural: "horizontalpodautoscalers"},
	}
	for _, test := range []struct {
		group, version, kind string
		want                 int
	}{
		{"*", "*", "Pod", 1}, {"", "v1", "Pod", 1}, {"core", "*", "Pod", 0}, {"*", "*", "*Pod*", 2}, {"*", "v?", "*", 3},
		{"apps", "*", "D*t", 1}, {"apps", "v2", "Deployment", 0}, {"*", "*", "", 0}, {"*", "*", "*x", 0},
	} {
		if got := table.Resources(test.group, test.version, test.kind); len(got) != test.want {
			t.Errorf("%v: %v", test, got)
		}
	}
}
