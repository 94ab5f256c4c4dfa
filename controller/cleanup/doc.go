// Package cleanup deletes what cleanup policies say, on their schedules, and objects
// whose label gives them an end.
//
// In come CleanupPolicies and ClusterCleanupPolicies of kyverno.io, the objects that
// they match, and the objects with the label cleanup.kyverno.io/ttl. Out go deletions,
// a PolicyTranslation for each policy that says when it ran and what it deleted, and
// events about policies.
//
// What must hold: only what was judged is deleted. A deletion names the object's UID
// and the version that was judged; one that has changed meanwhile is judged again. A
// policy in shadow deletes nothing and says what it would have deleted, and one that
// is off, or cannot be read, does neither. A CleanupPolicy never leaves its namespace.
// What one policy, kind or object fails at is said, and the others go on. A run that
// was missed is made up for once, however many were missed. A run that failed is made
// again, each time later than before, and then the schedule goes on. Lists are read by
// pages, with metadata alone where a policy asks for nothing else. At rest nothing is
// written, and nothing into a policy ever.
//
// It does not decide which objects a policy matches, when a schedule is due or what a
// label means: package interp does. It does not see to it that only one process runs.
//
// Start at Tick (runner.go), which is one look at all policies; run.go is a run of
// one. ttl.go is the label. cluster.go has what is asked of the outside; livecluster.go,
// statusstore.go and watch.go ask it of an API server.
package cleanup
