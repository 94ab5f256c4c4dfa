package schema

import "github.com/kvap/kvap/diag"

func notYAML(pos diag.Pos, err error) diag.Diagnostic {
	return diag.Errorf(pos, diag.Syntax, "the file of CustomResourceDefinitions is no valid YAML: %v", err)
}

func notCRD(pos diag.Pos, err error) diag.Diagnostic {
	return diag.Errorf(pos, diag.WrongType, "the document is no CustomResourceDefinition: %v; it is left out", err)
}

func otherKind(pos diag.Pos, apiVersion, kind string) diag.Diagnostic {
	return diag.Notef(pos, diag.OtherKind,
		"%s %s is no apiextensions.k8s.io/v1 CustomResourceDefinition; it is passed over", apiVersion, kind)
}

func missing(pos diag.Pos, name, path string) diag.Diagnostic {
	pos.Path = join(pos.Path, path)
	return diag.Errorf(pos, diag.Missing, "CustomResourceDefinition %s has no %s; it is left out", name, path)
}

func badScope(pos diag.Pos, name, scope string) diag.Diagnostic {
	pos.Path = join(pos.Path, "spec.scope")
	return diag.Errorf(pos, diag.OutOfRange,
		"CustomResourceDefinition %s has the scope %q; it must be Namespaced or Cluster", name, scope)
}

func defined(pos diag.Pos, name string, kind GVK) diag.Diagnostic {
	return diag.Warnf(pos, diag.Conflict,
		"CustomResourceDefinition %s defines %s, which is defined already; the first definition counts", name, kind)
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}
