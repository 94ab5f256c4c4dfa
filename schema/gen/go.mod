module github.com/kvap/kvap/schema/gen

go 1.26
