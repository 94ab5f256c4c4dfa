// Package standin has what those who stand in for Kyverno tell a cluster: kvap-dev, and
// the tests of migrations.
//
// Into a Kyverno goes where it can be asked. Out comes what the API server then has:
// webhook configurations with the names and labels of Kyverno's, policies that are said
// to be ready, and a lease that says that it is alive; and what rules have generated goes
// with them, as with Kyverno.
//
// What must hold: it looks as Kyverno does to those who ask whether Kyverno judges.
//
// It judges nothing and generates nothing: by which policies requests are judged is its
// callers' part, and so is what Kyverno has made before.
//
// Start at Kyverno (kyverno.go).
package standin
