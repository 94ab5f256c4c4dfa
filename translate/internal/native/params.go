package native

import "github.com/kvap/kvap/vap"

// A Params is the params object that a unit reads. An empty namespace is that of
// the object under review.
type Params struct {
	Kind, APIVersion, Name, Namespace string
}

// Key is everything that the params are.
func (p *Params) Key() string {
	if p == nil {
		return ""
	}
	return p.APIVersion + "/" + p.Kind + "/" + p.Namespace + "/" + p.Name
}

// AddTo gives a draft the kind of its params.
func (p *Params) AddTo(d *vap.Draft) {
	if p != nil {
		d.ParamKind = &vap.ParamKind{APIVersion: p.APIVersion, Kind: p.Kind}
	}
}
