package main

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// interpreter is the engine of the reference interpreter. Its world has the
// recorded ConfigMaps and nothing else, as Kyverno's had.
func interpreter(p *policy.Policy, exceptions []*policy.Exception, params []*unstructured.Unstructured) opinion {
	world := &interp.Offline{}
	for _, u := range params {
		world.Objects = append(world.Objects, u.Object)
	}
	return interpreted{interp.New([]*policy.Policy{p}, exceptions, world, interp.Limits{})}
}

type interpreted struct{ *interp.Interpreter }

func (i interpreted) statuses(rc recordedCase) (map[string]string, error) {
	admission, err := interp.AdmissionOf(rc.Request)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, r := range i.Judge(context.Background(), &interp.Request{
		Admission: admission, NamespaceLabels: rc.NamespaceLabels, Roles: rc.Roles, ClusterRoles: rc.ClusterRoles,
	}) {
		out[r.Rule] = string(r.Kyverno)
	}
	return out, nil
}
