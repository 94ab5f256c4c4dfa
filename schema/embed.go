package schema

import "embed"

//go:generate go -C gen run . -out ../data
//go:generate go -C gen run ./published -out ../data/published

// data has one file for each release, and one for each group of published kinds; gen/doc.go
// and gen/published/doc.go have their form. It is read only.
//
//go:embed data/*.json.gz data/published/*.json.gz
var data embed.FS

// publishedKinds has a line for each version of a published kind. It is read only.
//
//go:embed data/published/kinds.txt
var publishedKinds string
