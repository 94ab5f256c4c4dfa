package schema

import "embed"

//go:generate go -C gen run . -out ../data

// data has one file for each release; gen/doc.go has their form. It is read only.
//
//go:embed data/*.json.gz
var data embed.FS
