package main

import "strings"

// releases are the patches of k8s.io/kubernetes to read, one per minor: the
// newest that the module proxy has. To renew one:
//
//	go list -m -versions k8s.io/kubernetes
func releases() []string {
	return []string{
		"v1.30.14",
		"v1.31.14",
		"v1.32.13",
		"v1.33.13",
		"v1.34.4",
		"v1.35.4",
		"v1.36.3",
		"v1.37.2",
	}
}

// minorOf is 1.36 for v1.36.3.
func minorOf(version string) string {
	minor := strings.TrimPrefix(version, "v")
	return minor[:strings.LastIndex(minor, ".")]
}

// stagingOf is the version of a staging module, such as api, that belongs to a
// version of k8s.io/kubernetes: v0.36.3 for v1.36.3. Where the proxy lacks it,
// the minor's first release stands in: patches do not change types.
func stagingOf(module, version string) string {
	if module == "kube-aggregator" && version == "v1.31.14" {
		return "v0.31.0"
	}
	return "v0" + strings.TrimPrefix(version, "v1")
}
