package rule

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
)

// AsValidation is a rule that verifies images as one that validates, where all that it asks of
// any image is a digest. Another rule stays what it is.
//
//	verifyImages:
//	- imageReferences: ["*"]
//	  mutateDigest: false
//	  verifyDigest: true
//	  required: false
func AsValidation(r *policy.Rule) *policy.Rule {
	asked := false
	for _, v := range r.VerifyImages {
		switch {
		case len(v.Attestors)+len(v.Attestations)+len(v.Skip) > 0 || v.Validate != nil || v.Credentials != nil,
			v.MutateDigest || v.Required || !slices.Contains(v.References, "*"):
			return r
		}
		asked = asked || v.VerifyDigest
	}
	if _, more := r.VerifiesMore(); more || !asked || r.Preconditions != nil || r.ImageExtractors != nil {
		return r
	}
	out := *r
	first := r.VerifyImages[0]
	out.Validate = &policy.Validate{Pos: first.Pos, Action: r.ImageAction(), Message: policy.Text{Pos: first.Pos, Value: "an image has no digest"}}
	return &out
}

// imagesHaveDigests is: each image of the object has a digest. No such rule excuses an update of
// what violated it before, but one of an object that is being deleted.
func imagesHaveDigests(l *read.Lowering, u *pack.Unit) partial.Bool {
	bad, ok := query.WithoutDigest(l)
	if !ok {
		return partial.Sure(cel.True())
	}
	u.Message.Text = l.Rule.Validate.Message.Value
	named := cel.String("no reference with a digest: ").Plus(bad.Call(cel.FuncJoin, cel.String(", ")))
	u.Message.Expr = &named
	return partial.Sure(cel.Or(query.GoesWithImages(l), bad.Size().Eq(cel.Int(0))))
}
