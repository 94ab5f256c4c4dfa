// Package scan puts the objects that a cluster has before its policies, and keeps
// reports of what violates them.
//
// In come compiled policies, and a connection to the cluster. Out go PolicyReports,
// or OpenReports, one for each object that violates something, by way of package
// report. Objects are judged as a request to create them would be, by the judges of
// `kvap eval`: native rules by what they are translated to, the others by the
// interpreter. There is no user in such a request, so rules that ask for one are not asked. Policies
// with background: false are asked, for reports, about what was written since they are as they are.
//
// How it works: an informer keeps a trace of each object of the kinds that rules are about, and one
// of each report. What they tell becomes a task of a rate-limited queue: an object to judge. All
// objects of a kind are read by pages, and become such tasks, when rules about the kind are new, and
// once in a while. A task judges the object unless neither it nor its Namespace nor its report is
// another one than when it was judged last, and brings the report into step.
//
// What must hold: at rest nothing is judged and nothing written, by a new leader neither. A report
// goes when its object violates nothing any more, and with its object, its rules or its kind; never
// because something could not be read. What fails for one object, one kind or the reports of one
// scope keeps no other, and is tried again, later and later; Problem and the metrics tell of it.
// Reports that are not kvap's are left alone. Of an object no more is kept than where it is, and
// digests.
//
// What violates and is new in a report is told when the report is written, and not again.
//
// It does not decide what is judged: kinds that may not be read are passed over, and
// said; their reports stay.
//
// Start at Run (scanner.go). lead.go has the queue and the policies, follow.go the informers,
// object.go what becomes of one object, admission.go which rules are asked, and reports.go what is
// written. A Survey counts what
// violates each rule, and writes nothing.
package scan
