package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
)

// home is where archives are loaded from once they are published.
const home = "https://github.com/kvap/kvap"

// platforms are those that a release is for. TestPlatforms type-checks the program for each.
func platforms() []string {
	return []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}
}

func main() {
	var o options
	flag.StringVar(&o.out, "out", "dist", "the folder to write, which must not have a release yet")
	flag.StringVar(&o.base, "base", "gcr.io/distroless/static-debian12:nonroot", "the image that the images are built on; none for no other files than the program, a dry run without network")
	flag.StringVar(&o.push, "push", "", "where to push the images to, each by the name of its program, as ghcr.io/kvap; nowhere where it is empty")
	only := flag.String("platforms", strings.Join(platforms(), ","), "build these only")
	flag.Parse()
	o.platforms = strings.Split(*only, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := release(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1) //nolint:gocritic // there is nothing to stop any more
	}
}

type options struct {
	out, base, push string
	platforms       []string
}

// A made file is what a platform's archive is.
type archive struct {
	platform
	File   string // its name in the folder
	SHA256 string
}

// A platform is an operating system and an architecture, as Go names them.
type platform struct{ OS, Arch string }

// file is the name of a program's file.
func (p platform) file(program string) string {
	if p.OS == "windows" {
		return program + ".exe"
	}
	return program
}

// The programs of a release: the command line, which archives have too, and what runs in a cluster.
const (
	commandLine = "kvap"
	inCluster   = "kvap-controller"
)

func release(ctx context.Context, o options) error {
	if _, err := os.Stat(filepath.Join(o.out, "checksums.txt")); err == nil {
		return fmt.Errorf("%s has a release already", o.out)
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return err
	}
	version, err := newest(string(changelog))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	source, err := checkout(ctx, version)
	if err != nil {
		return err
	}
	defer os.RemoveAll(source.dir) //nolint:errcheck // what stays is a temporary folder
	extras, err := source.extras(ctx, version)
	if err != nil {
		return err
	}
	var made []archive
	programs := map[platform][]byte{}
	controllers := map[platform][]byte{}
	for _, name := range o.platforms {
		p := platform{}
		p.OS, p.Arch, _ = strings.Cut(name, "/")
		fmt.Fprintln(os.Stderr, "building for", name)
		program, err := source.build(ctx, p, commandLine)
		if err != nil {
			return err
		}
		programs[p] = program
		if p.OS == "linux" {
			if controllers[p], err = source.build(ctx, p, inCluster); err != nil {
				return err
			}
		}
		base := fmt.Sprintf("kvap_%s_%s_%s", version, p.OS, p.Arch)
		packed, ending, err := pack(p, program, extras, source.time)
		if err != nil {
			return err
		}
		bill, err := sbom(base+ending, version, program, source.time)
		if err != nil {
			return err
		}
		for file, data := range map[string][]byte{base + ending: packed, base + ".spdx.json": bill} {
			if err := os.WriteFile(filepath.Join(o.out, file), data, 0o644); err != nil {
				return err
			}
		}
		made = append(made, archive{p, base + ending, sum(packed)})
	}
	for name, built := range map[string]map[platform][]byte{commandLine: programs, inCluster: controllers} {
		index, err := image(ctx, o.base, name, version, built, source)
		if err != nil {
			return err
		}
		to := ""
		if o.push != "" {
			to = o.push + "/" + name
		}
		if err := writeImage(ctx, filepath.Join(o.out, "images", name), to, version, index); err != nil {
			return err
		}
	}
	for file, text := range map[string]string{"kvap.yaml": krew(version, made), "kvap.rb": homebrew(version, made)} {
		if err := os.WriteFile(filepath.Join(o.out, file), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return checksums(o.out)
}

// newest is the version of the first heading of the changelog that names one.
func newest(changelog string) (string, error) {
	m := regexp.MustCompile(`(?m)^## v?(\d+\.\d+\.\d+)`).FindStringSubmatch(changelog)
	if m == nil {
		return "", fmt.Errorf("CHANGELOG.md names no version")
	}
	return m[1], nil
}
