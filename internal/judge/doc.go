// Package judge puts requests before two judges: the native translation of the
// policies, judged by the API server's own code, and the reference interpreter.
//
// In come compiled policies, exceptions, the objects that rules look up and native
// objects that are deployed already; then requests. Out comes, for each request, an opinion for every rule as Kyverno reports
// it: what either judge says, and whether that is the same verdict.
//
// What must hold: the policies are compiled once. Both judges see the same
// request, whose objects of built-in kinds are in the form that the API server
// gives them. Rules are told apart by what they are, not by their names, which may
// be cut to the same.
//
// Of mutate rules the judges say what they make of an object. Mutate asks the
// interpreter, each rule on what the ones before it made; where all mutate rules of a
// policy are native, a Changer holds what the native policies make of the object of
// the request to what the interpreter makes of the same. Policies that mutate and are
// deployed already are DeployedMutations.
//
// What an API server would default is filled in where a Client is asked for it. It does nothing
// about the opinions.
//
// Start at New (judge.go), then Judge and Same (opinion.go); Deployed reads native
// objects, and deploy.go finds the rules that they are about. Client makes requests
// of resources, and Request reads recorded ones.
package judge
