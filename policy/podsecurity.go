package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/diag"
)

func (r *reader) podSecurity(n *Node) *PodSecurity {
	o := r.object(n, "podSecurity")
	p := &PodSecurity{Pos: n.Pos}
	p.Level = r.choice(o.require("level"), "privileged", "baseline", "restricted")
	version := o.text("version")
	p.Version = version.Value
	if !podSecurityVersion(p.Version) {
		r.fail(version.Pos, diag.OutOfRange, "version cannot be %q; it is latest or a Kubernetes version such as v1.29", p.Version)
	}
	p.Exclude = each(o.list("exclude"), r.podSecurityExclude)
	for _, e := range p.Exclude {
		if p.Level == "baseline" && slices.Contains(restrictedControls(), e.ControlName) {
			r.fail(e.Pos, diag.OutOfRange, "the control %q is not part of the level baseline; remove this entry", e.ControlName)
		}
	}
	o.end()
	return p
}

func podSecurityVersion(version string) bool {
	if version == "" || version == "latest" {
		return true
	}
	minor, ok := strings.CutPrefix(version, "v1.")
	n, err := strconv.Atoi(minor)
	return ok && err == nil && n >= 0 && minor == strconv.Itoa(n)
}

func (r *reader) podSecurityExclude(n *Node) PodSecurityExclude {
	o := r.object(n, "an excluded control")
	e := PodSecurityExclude{Pos: n.Pos, Images: o.strings("images"), RestrictedField: o.str("restrictedField"), Values: o.strings("values")}
	e.ControlName = r.choice(o.require("controlName"), controls()...)
	o.end()
	switch {
	case slices.Contains(containerControls(), e.ControlName) && len(e.Images) == 0:
		r.fail(n.Pos, diag.Missing, "the control %q is about containers; name the images, \"*\" for all", e.ControlName)
	case slices.Contains(podControls(), e.ControlName) && len(e.Images) > 0:
		r.fail(o.pos("images"), diag.Conflict, "the control %q is about the whole pod; remove images", e.ControlName)
	}
	if (e.RestrictedField == "") != (len(e.Values) == 0) {
		r.fail(n.Pos, diag.Missing, "restrictedField and values of an excluded control need each other; add the missing one")
	}
	return e
}

func controls() []string {
	return slices.Concat(containerControls(), podControls(), restrictedControls()[2:], []string{
		"HostProcess", "AppArmor", "SELinux", "Seccomp",
	})
}

// containerControls only exist on containers.
func containerControls() []string {
	return []string{"Capabilities", "Privileged Containers", "Host Ports", "/proc Mount Type", "Privilege Escalation"}
}

// podControls only exist on pods.
func podControls() []string {
	return []string{"Host Namespaces", "HostPath Volumes", "Sysctls", "Volume Types"}
}

// restrictedControls are in no other level than restricted.
func restrictedControls() []string {
	return []string{"Volume Types", "Privilege Escalation", "Running as Non-root", "Running as Non-root user"}
}
