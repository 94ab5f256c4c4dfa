// Package scan puts the objects that a cluster has before its policies, and keeps
// reports of what violates them.
//
// In come compiled policies, and a connection to the cluster. Out go PolicyReports,
// or OpenReports, one for each object that violates something, by way of package
// report. Objects are judged as a request to create them would be, by the judges of
// `kvap eval`: native rules by what they are translated to, the others by the
// interpreter. There is no user in such a request, so rules that ask for one, and
// policies with background: false, are not asked.
//
// What must hold: a scan that finds what the last one found writes nothing. A report
// goes when its object violates nothing any more, and with its object. What fails for
// one object, or one resource, keeps no other, and is tried again, later and later;
// Problem and the metrics tell of it. Reports that are not kvap's are left alone. Lists
// are read by pages, changes by watches of metadata, and nothing of an object is kept
// but what violates.
//
// It does not decide what is judged: kinds that may not be read are passed over, and
// said; their reports stay.
//
// Start at Run (scanner.go). round.go does the work; judge.go is what becomes of one
// object. A Survey counts what violates each rule, and writes nothing.
package scan
