package interp

import "github.com/kvap/kvap/diag"

// Unsupported is the code of a rule that the interpreter cannot judge: it checks
// the signatures of images or manifests, or has CEL that cannot be read.
const Unsupported diag.Code = 590
