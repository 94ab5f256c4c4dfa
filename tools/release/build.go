package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// A workTree is a copy of what is committed.
type workTree struct {
	dir    string
	commit string
	time   time.Time // of the commit: that of all files of the release
}

// checkout copies the commit and gives the copy the tag of the version, from which Go takes what
// `kvap version` says.
func checkout(ctx context.Context, version string) (workTree, error) {
	dir, err := os.MkdirTemp("", "kvap-release-")
	if err != nil {
		return workTree{}, err
	}
	s := workTree{dir: dir}
	if _, err := s.run(ctx, nil, "git", "clone", "--quiet", cwd(), dir); err != nil {
		return s, err
	}
	if _, err := s.run(ctx, nil, "git", "tag", "--force", "v"+version); err != nil {
		return s, err
	}
	text, err := s.run(ctx, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return s, err
	}
	commit, seconds, _ := strings.Cut(strings.TrimSpace(text), " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return s, err
	}
	s.commit, s.time = commit, time.Unix(unix, 0).UTC()
	return s, nil
}

func cwd() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	return dir
}

// run gives what a command says, and its errors in the error.
func (s workTree) run(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), env...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, errs.String())
	}
	return string(out), nil
}

// build is a program for a platform.
func (s workTree) build(ctx context.Context, p platform, program string) ([]byte, error) {
	out := filepath.Join(s.dir, "bin", p.OS+"-"+p.Arch, p.file(program))
	_, err := s.run(ctx, []string{"CGO_ENABLED=0", "GOFLAGS=", "GOOS=" + p.OS, "GOARCH=" + p.Arch},
		"go", "build", "-buildvcs=true", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", out, "./cmd/"+program)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

// extras are the files that every archive has besides the program, by their path in it.
func (s workTree) extras(ctx context.Context, version string) (map[string][]byte, error) {
	here := platform{runtime.GOOS, runtime.GOARCH}
	if _, err := s.build(ctx, here, commandLine); err != nil {
		return nil, err
	}
	kvap := filepath.Join(s.dir, "bin", here.OS+"-"+here.Arch, here.file(commandLine))
	told, err := s.run(ctx, nil, kvap, "version")
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(told, "kvap v"+version+" ") {
		return nil, fmt.Errorf("what is built says %q, and the release is %s", told, version)
	}
	extras := map[string][]byte{}
	for shell, file := range map[string]string{"bash": "kvap.bash", "zsh": "_kvap", "fish": "kvap.fish", "powershell": "kvap.ps1"} {
		text, err := s.run(ctx, nil, kvap, "completion", shell)
		if err != nil {
			return nil, err
		}
		extras["completion/"+file] = []byte(text)
	}
	if _, err := s.run(ctx, nil, kvap, "manual", filepath.Join("bin", "man")); err != nil {
		return nil, err
	}
	pages, err := filepath.Glob(filepath.Join(s.dir, "bin", "man", "*.1"))
	if err != nil {
		return nil, err
	}
	files := map[string]string{"LICENSE": "LICENSE", "README.md": "README.md"}
	for _, page := range pages {
		files["man/"+filepath.Base(page)] = filepath.Join("bin", "man", filepath.Base(page))
	}
	for name, path := range files {
		if extras[name], err = os.ReadFile(filepath.Join(s.dir, path)); err != nil {
			return nil, err
		}
	}
	return extras, nil
}
