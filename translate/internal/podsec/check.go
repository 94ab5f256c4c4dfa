package podsec

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/translate/internal/compare"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// A podCheck is a check of the Pod Security Standards.
type podCheck struct {
	control    string
	restricted bool // not part of the level baseline
	holds      func(*podStandard) cel.Bool
}

func podChecks() []podCheck {
	return []podCheck{
		{"Privileged Containers", false, (*podStandard).privileged},
		{"Host Namespaces", false, (*podStandard).hostNamespaces},
		{"HostPath Volumes", false, (*podStandard).hostPathVolumes},
		{"Host Ports", false, (*podStandard).hostPorts},
		{"Host Probes / Lifecycle Hooks", false, (*podStandard).probeHosts},
		{"/proc Mount Type", false, (*podStandard).procMount},
		{"Capabilities", false, (*podStandard).addedCapabilities},
		{"Seccomp", false, (*podStandard).seccompBaseline},
		{"SELinux", false, (*podStandard).seLinux},
		{"Sysctls", false, (*podStandard).sysctls},
		{"AppArmor", false, (*podStandard).appArmor},
		{"HostProcess", false, (*podStandard).hostProcess},
		{"Volume Types", true, (*podStandard).volumeTypes},
		{"Privilege Escalation", true, (*podStandard).privilegeEscalation},
		{"Running as Non-root", true, (*podStandard).nonRoot},
		{"Running as Non-root user", true, (*podStandard).rootUser},
		{"Seccomp", true, (*podStandard).seccompRestricted},
		{"Capabilities", true, (*podStandard).restrictedCapabilities},
	}
}

// boolean is the place's boolean, or what a missing one stands for.
func boolean(v read.Place, missing bool) cel.Bool {
	return v.Soft(missing, cel.Value.AsBool)
}

// forbidden is a boolean field that must not be true.
func forbidden(control, field string) finding {
	return oneError(control, field,
		func(v read.Place) cel.Bool { return cel.Not(boolean(under(v, field), false)) },
		constantly("true"))
}

// text is a string field that, where it is there, must be one of the words. An empty
// one that is not among them is an error without a value.
func text(control, field string, words ...string) finding {
	empty := []string{""}
	if scalar.AnyWild(words, "") {
		empty = nil
	}
	return oneError(control, field,
		func(v read.Place) cel.Bool {
			return under(v, field).Soft(true, func(x cel.Value) cel.Bool { return native.OneOfWords(x, words) })
		},
		func(v read.Place, values []string) cel.Bool {
			return under(v, field).Soft(true, func(x cel.Value) cel.Bool { return native.OneOfTexts(x, append(empty, values...)) })
		})
}

func (s *podStandard) privileged() cel.Bool {
	return s.containers(forbidden("Privileged Containers", "securityContext.privileged"))
}

func (s *podStandard) hostNamespaces() cel.Bool {
	const control = "Host Namespaces"
	return cel.And(s.pod(forbidden(control, "hostNetwork")), s.pod(forbidden(control, "hostPID")), s.pod(forbidden(control, "hostIPC")))
}

func (s *podStandard) hostPathVolumes() cel.Bool {
	return s.pod(s.errorEach("HostPath Volumes", "volumes", "hostPath",
		func(volume read.Place) cel.Bool { return cel.Not(volume.Field("hostPath").Found()) },
		func(volume read.Place, values []string) cel.Bool {
			return volume.Field("hostPath").Settled().Field("path").Soft(true, func(x cel.Value) cel.Bool {
				return native.OneOfTexts(x, append([]string{""}, values...)) // an empty one is no value at all
			})
		}))
}

func (s *podStandard) hostPorts() cel.Bool {
	port := func(in func(cel.Value) cel.Bool) func(read.Place) cel.Bool {
		return func(v read.Place) cel.Bool { return v.Field("hostPort").Soft(true, in) }
	}
	return s.containers(s.errorEach("Host Ports", "ports", "hostPort",
		port(func(x cel.Value) cel.Bool { return x.Eq(cel.Int(0)) }),
		func(v read.Place, values []string) cel.Bool {
			return port(func(x cel.Value) cel.Bool { return compare.IntIn(x, values) })(v)
		}))
}

// probeHosts cannot be excluded: Kyverno knows no control for it.
func (s *podStandard) probeHosts() cel.Bool {
	return s.each(s.allContainers(), "container", func(c read.Place) cel.Bool {
		// to the type checker, no two of these are of one type
		handlers := cel.List(read.Dyn(c.Expr.Optional("livenessProbe")), read.Dyn(c.Expr.Optional("readinessProbe")), read.Dyn(c.Expr.Optional("startupProbe")),
			read.Dyn(c.Expr.Optional("lifecycle").Optional("postStart")), read.Dyn(c.Expr.Optional("lifecycle").Optional("preStop")))
		return s.l.Binders.All(handlers, "handler", func(h cel.Value) cel.Bool {
			unset := func(action string) cel.Bool {
				return h.Optional(action).Optional("host").OrValue(cel.String("")).Eq(cel.String(""))
			}
			return cel.And(unset("httpGet"), unset("tcpSocket"))
		})
	})
}

func (s *podStandard) procMount() cel.Bool {
	return s.containers(text("/proc Mount Type", "securityContext.procMount", "Default"))
}

// capabilities are those of a field that must be among the words. All others are
// the values of one error.
func (s *podStandard) capabilities(field string, words ...string) finding {
	every := func(c read.Place, in func(cel.Value) cel.Bool) cel.Bool {
		return s.each(orEmptyList(under(c, field)), "capability", func(x read.Place) cel.Bool { return in(x.Expr) })
	}
	f := oneError("Capabilities", field,
		func(c read.Place) cel.Bool {
			return every(c, func(x cel.Value) cel.Bool { return native.OneOfWords(x, words) })
		},
		func(c read.Place, values []string) cel.Bool {
			return every(c, func(x cel.Value) cel.Bool { return native.OneOfTexts(x, slices.Concat(words, values)) })
		})
	general := f.holds
	f.holds = func(c read.Place, waivers []waiver) cel.Bool {
		if len(waivers) != 1 || len(waivers[0].values) == 0 {
			return general(c, waivers)
		}
		return every(c, func(x cel.Value) cel.Bool { // says the same, and the words once only
			return cel.Or(native.OneOfWords(x, words), cel.And(waivers[0].when, native.OneOfTexts(x, waivers[0].values)))
		})
	}
	return f
}

func (s *podStandard) addedCapabilities() cel.Bool {
	return s.containers(s.capabilities("securityContext.capabilities.add",
		"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE",
		"SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"))
}

func (s *podStandard) seLinux() cel.Bool {
	const control = "SELinux"
	types := []string{"", "container_t", "container_init_t", "container_kvm_t"}
	if s.since(31) {
		types = append(types, "container_engine_t")
	}
	findings := []finding{
		text(control, "securityContext.seLinuxOptions.type", types...),
		text(control, "securityContext.seLinuxOptions.user", ""),
		text(control, "securityContext.seLinuxOptions.role", ""),
	}
	var conds []cel.Bool
	for _, f := range findings {
		conds = append(conds, s.pod(f))
	}
	return cel.And(append(conds, s.containers(findings...))...)
}

func (s *podStandard) sysctls() cel.Bool {
	allowed := []string{
		"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range",
		"net.ipv4.ip_unprivileged_port_start",
	}
	if s.since(27) {
		allowed = append(allowed, "net.ipv4.ip_local_reserved_ports")
	}
	if s.since(29) {
		allowed = append(allowed, "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes")
	}
	if s.since(32) {
		allowed = append(allowed, "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")
	}
	name := func(words []string) func(read.Place) cel.Bool {
		return func(v read.Place) cel.Bool {
			return v.Field("name").Soft(scalar.AnyWild(words, ""), func(x cel.Value) cel.Bool { return native.OneOfTexts(x, words) })
		}
	}
	return s.pod(s.errorEach("Sysctls", "securityContext.sysctls", "name", name(allowed),
		func(v read.Place, values []string) cel.Bool { return name(append([]string{""}, values...))(v) }))
}

func (s *podStandard) hostProcess() cel.Bool {
	f := forbidden("HostProcess", "securityContext.windowsOptions.hostProcess")
	return cel.And(s.pod(f), s.containers(f))
}

// appArmor is about fields, and about the annotations that were there before them.
func (s *podStandard) appArmor() cel.Bool {
	f := text("AppArmor", "securityContext.appArmorProfile.type", "RuntimeDefault", "Localhost")
	return cel.And(s.pod(f), s.containers(f), s.appArmorAnnotations(f.control))
}

// volumeTypes are the sources of volumes in the level restricted. A volume has one.
func (s *podStandard) volumeTypes() cel.Bool {
	allowed := []string{"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret"}
	return s.each(s.list("volumes"), "volume", func(volume read.Place) cel.Bool {
		var alts []cel.Bool
		for _, field := range allowed {
			alts = append(alts, volume.Field(field).Found())
		}
		return cel.Or(append(alts, s.excludedVolume("Volume Types", volume))...)
	})
}

// privilegeEscalation must be false, so a missing one is an error too: without a
// value where the securityContext is missing, and otherwise with the value nil.
func (s *podStandard) privilegeEscalation() cel.Bool {
	const field = "securityContext.allowPrivilegeEscalation"
	f := oneError("Privilege Escalation", field,
		func(c read.Place) cel.Bool { return cel.Not(boolean(under(c, field), true)) },
		func(c read.Place, values []string) cel.Bool {
			isNil, isTrue := scalar.AnyWild(values, "nil"), scalar.AnyWild(values, "true")
			set := under(c, field).Found()
			switch {
			case isNil && isTrue:
				return cel.True()
			case isNil:
				return cel.Not(set)
			case isTrue:
				return cel.Or(set, cel.Not(c.Field("securityContext").Found()))
			}
			return cel.Not(c.Field("securityContext").Found())
		})
	return cel.Or(s.onWindows(), s.containers(f))
}

func (s *podStandard) rootUser() cel.Bool {
	const field = "securityContext.runAsUser"
	f := oneError("Running as Non-root user", field,
		func(v read.Place) cel.Bool {
			return under(v, field).Soft(true, func(x cel.Value) cel.Bool { return x.Ne(cel.Int(0)) })
		},
		constantly("0"))
	return cel.And(s.pod(f), s.containers(f))
}

func (s *podStandard) restrictedCapabilities() cel.Bool {
	const drop = "securityContext.capabilities.drop"
	dropped := oneError("Capabilities", drop,
		func(c read.Place) cel.Bool { return cel.String("ALL").In(orEmptyList(under(c, drop)).Expr).AsBool() },
		func(c read.Place, values []string) cel.Bool { // a missing or empty list has no values
			return s.each(orEmptyList(under(c, drop)), "capability", func(x read.Place) cel.Bool { return native.OneOfTexts(x.Expr, values) })
		})
	return cel.Or(s.onWindows(), s.containers(dropped, s.capabilities("securityContext.capabilities.add", "NET_BIND_SERVICE")))
}

// containerLists are the lists of a pod's containers.
func containerLists() []string {
	return []string{"containers", "initContainers", "ephemeralContainers"}
}

// list is a list of the pod's spec, empty where it is missing.
func (s *podStandard) list(name string) read.Place { return orEmptyList(s.spec.Field(name)) }

func orEmptyList(v read.Place) read.Place {
	if v.Never {
		return read.PlaceOf(cel.List(), v.Typ)
	}
	return read.PlaceOf(read.ListOf{V: v}.Source(false), v.Typ)
}

// allContainers is the pod's containers, whichever list they are in.
func (s *podStandard) allContainers() read.Place {
	return read.PlaceOf(s.all, s.list("containers").Typ)
}

// joined is the containers of some lists.
func (s *podStandard) joined(names []string) read.Place {
	switch len(names) {
	case 1:
		return s.list(names[0])
	case len(containerLists()):
		return s.allContainers()
	}
	first, second := s.list(names[0]), s.list(names[1])
	name := strings.TrimSuffix(names[0], "Containers") + "And" + strings.ToUpper(names[1][:1]) + names[1][1:]
	return read.PlaceOf(read.Let(s.l, ofOld(s.l, name), first.Expr.Plus(read.Dyn(second.Expr))), first.Typ)
}

// each is: ok of every element.
func (s *podStandard) each(list read.Place, hint string, ok func(read.Place) cel.Bool) cel.Bool {
	return s.l.Binders.All(list.Expr, hint, func(x cel.Value) cel.Bool { return ok(read.PlaceOf(x, list.Elem())) })
}

// containers is: the findings are none of any container.
func (s *podStandard) containers(fs ...finding) cel.Bool {
	return s.containersIn(containerLists(), fs...)
}

// containersIn is: the findings are none of any container of these lists. Lists
// with the same exclusions are gone through as one.
func (s *podStandard) containersIn(lists []string, fs ...finding) cel.Bool {
	groups := map[string][]string{}
	var order []string
	for _, list := range lists {
		about := s.excludedIn(list, fs)
		if groups[about] == nil {
			order = append(order, about)
		}
		groups[about] = append(groups[about], list)
	}
	var conds []cel.Bool
	for _, about := range order {
		conds = append(conds, s.each(s.joined(groups[about]), "container", func(c read.Place) cel.Bool {
			all := make([]cel.Bool, len(fs))
			for i, f := range fs {
				all[i] = f.holds(c, s.waivers(f, groups[about][0], c))
			}
			return cel.And(all...)
		}))
	}
	return cel.And(conds...)
}

// excludedIn tells the exclusions of one list from those of others.
func (s *podStandard) excludedIn(list string, fs []finding) string {
	var b strings.Builder
	for _, f := range fs {
		for _, w := range s.waivers(f, list, read.PlaceOf(cel.Ident("container"), read.AnyType())) {
			b.WriteString(w.when.String() + "\x00" + strings.Join(w.values, "\x01") + "\x02")
		}
		b.WriteString("\x03")
	}
	return b.String()
}

func (s *podStandard) someContainer(p func(read.Place) cel.Bool) cel.Bool {
	list := s.allContainers()
	return s.l.Binders.Exists(list.Expr, "container", func(x cel.Value) cel.Bool { return p(read.PlaceOf(x, list.Elem())) })
}

// nonRoot must be true for every container, its own or else the pod's.
func (s *podStandard) nonRoot() cel.Bool {
	const control, field = "Running as Non-root", "securityContext.runAsNonRoot"
	set := func(v read.Place) cel.Bool { return under(v, field).Found() }
	ofPod := boolean(under(s.spec, field), false)
	own := oneError(control, field,
		func(v read.Place) cel.Bool { return boolean(under(v, field), true) },
		constantly("false"))
	either := oneError(control, field,
		func(c read.Place) cel.Bool {
			v := under(c, field)
			either, _ := v.OrElse(ofPod.Value)
			return either.AsBool()
		},
		func(c read.Place, values []string) cel.Bool {
			return cel.Or(cel.Not(set(c)), cel.Lit(scalar.AnyWild(values, "false"))) // a missing one has no value
		})
	return cel.And(s.pod(own), s.queued(either, cel.Not(ofPod)))
}

const (
	seccomp      = "Seccomp"
	seccompField = "securityContext.seccompProfile.type"
)

// profile is a type of seccomp profile that is set to what is not allowed.
func profile() finding { return text(seccomp, seccompField, "RuntimeDefault", "Localhost") }

// seccompBaseline is: no profile is set to what is not allowed.
func (s *podStandard) seccompBaseline() cel.Bool {
	return cel.And(s.pod(profile()), s.containers(profile()))
}

// seccompRestricted is: in addition to that, every container has a profile, its own
// or else the pod's. Kyverno does not ask for that while some profile is set to
// what is not allowed; so where such are excluded, it does not ask at all.
func (s *podStandard) seccompRestricted() cel.Bool {
	const holder = "securityContext.seccompProfile"
	set := func(v read.Place) cel.Bool { return under(v, holder).Found() }
	ofPod := set(s.spec)
	missing := oneError(seccomp, seccompField, set, func(read.Place, []string) cel.Bool { return cel.True() })
	profiled := []cel.Bool{s.onWindows(), ofPod}
	if len(s.of(seccomp, true)) > 0 { // some that are set may be excluded
		profiled = append(profiled, s.someContainer(func(c read.Place) cel.Bool { return cel.Not(profile().holds(c, nil)) }))
	}
	return cel.Or(append(profiled, s.queued(missing, cel.True()))...) // active behind !ofPod; the baseline check sees to what is set
}

// queued is: no container has the finding but for what exclusions take out. Those without
// images are about the pod, but the container that stands in for its containers has an
// error as well while the pod sets nothing that a container can do with (active), and each
// takes out one error of the pod's containers (not of the init containers, whose field is
// another). Beside exclusions by image it matters which one that is.
func (s *podStandard) queued(f finding, active cel.Bool) cel.Bool {
	steps := s.steps(f)
	first := slices.IndexFunc(steps, isStandIn)
	if first < 0 {
		return s.containers(f)
	}
	others := s.containersIn(containerLists()[1:], f)
	if slices.ContainsFunc(steps, func(e exclusion) bool { return s.total(f, e) }) {
		return others
	}
	if slices.ContainsFunc(steps, func(e exclusion) bool { return !isStandIn(e) }) {
		s.l.SetPos(steps[first].Pos)
		panic(s.l.Refuse(diag.NoExpression, "an exclusion of %s without images, beside others, has no native form", f.control))
	}
	list := s.list("containers")
	wrong := s.l.Binders.Filter(list.Expr, "container", func(x cel.Value) cel.Bool { return cel.Not(f.holds(read.PlaceOf(x, list.Elem()), nil)) })
	taken := cel.Int(0)
	for i, e := range steps {
		one := cel.Int(1)
		if !e.when.IsTrue() {
			one = cel.Cond(e.when, one, cel.Int(0))
		}
		if taken = taken.Plus(one); i == 0 {
			taken = one
		}
	}
	left := wrong.Size().Compare(cel.LessEqual, taken)
	return cel.And(cel.CondBool(active, left, wrong.Size().Eq(cel.Int(0))), others)
}

// steps are the exclusions about the pod's containers, in order.
func (s *podStandard) steps(f finding) []exclusion {
	var out []exclusion
	for _, e := range s.exclusions {
		if e.ControlName == f.control && e.names("spec.containers[*]."+f.field) {
			out = append(out, e)
		}
	}
	return out
}

func isStandIn(e exclusion) bool { return len(e.Images) == 0 }

// total tells whether the exclusion takes out the errors of every container.
func (s *podStandard) total(f finding, e exclusion) bool {
	c := read.PlaceOf(cel.Ident("container"), s.list("containers").Elem())
	return !isStandIn(e) && f.covered(c, e.forContainer(c)).IsTrue()
}
