package main

import (
	"fmt"
	"strings"
)

const summary = "Turn Kyverno policies into native admission policies"

func location(version string, a archive) string {
	return home + "/releases/download/v" + version + "/" + a.File
}

// krew is the manifest of the kubectl plug-in.
func krew(version string, archives []archive) string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: kvap
spec:
  version: v%s
  homepage: %s
  shortDescription: %s
  description: |
    Converts Kyverno policies to ValidatingAdmissionPolicies and MutatingAdmissionPolicies,
    which the API server runs by itself; judges, tests and checks them; shows where each
    rule of a cluster is judged; and leads the way off Kyverno.
  platforms:
`, version, home, summary)
	for _, a := range archives {
		fmt.Fprintf(&b, `    - selector:
        matchLabels: {os: %s, arch: %s}
      uri: %s
      sha256: %s
      bin: %s
`, a.OS, a.Arch, location(version, a), a.SHA256, a.file(commandLine))
	}
	return b.String()
}

// homebrew is the formula.
func homebrew(version string, archives []archive) string {
	var b strings.Builder
	fmt.Fprintf(&b, `class Kvap < Formula
  desc "%s"
  homepage "%s"
  version "%s"
  license "Apache-2.0"
`, summary, home, version)
	for _, system := range []struct{ os, brew string }{{"darwin", "macos"}, {"linux", "linux"}} {
		fmt.Fprintf(&b, "\n  on_%s do\n", system.brew)
		for _, a := range archives {
			if a.OS != system.os {
				continue
			}
			cpu := map[string]string{"amd64": "intel", "arm64": "arm"}[a.Arch]
			fmt.Fprintf(&b, "    on_%s do\n      url \"%s\"\n      sha256 \"%s\"\n    end\n", cpu, location(version, a), a.SHA256)
		}
		b.WriteString("  end\n")
	}
	b.WriteString(`
  def install
    bin.install "kvap"
    man1.install Dir["man/*.1"]
    bash_completion.install "completion/kvap.bash" => "kvap"
    zsh_completion.install "completion/_kvap"
    fish_completion.install "completion/kvap.fish"
  end

  test do
    assert_match "kvap v#{version}", shell_output("#{bin}/kvap version")
  end
end
`)
	return b.String()
}
