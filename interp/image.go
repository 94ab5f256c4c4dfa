package interp

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/interp/internal/expr"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
)

// An image is a reference to a container image, taken apart.
type image struct {
	registry, path, name, tag, digest string
}

// parseImage reads a reference. One that names no registry is in the default
// one, as written: no library/ is added.
func parseImage(text, defaultRegistry string) (image, error) {
	full := text
	if !namesRegistry(text) {
		full = defaultRegistry + "/" + text
	}
	rest, digest, hasDigest := strings.Cut(full, "@")
	name, tag := rest, ""
	hasTag := false
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, '/') {
		name, tag, hasTag = rest[:i], rest[i+1:], true
	}
	registry, path, _ := strings.Cut(name, "/")
	if !validHost(registry) {
		registry, path = "", name // what looks like a host is the front of a path
	}
	if !validImageName(registry, path) || hasTag && !validTag(tag) || hasDigest && !validDigest(digest) {
		return image{}, fmt.Errorf("bad image: %q is no image reference", text)
	}
	img := image{registry: registry, path: path, name: path[strings.LastIndexByte(path, '/')+1:], tag: tag, digest: digest}
	if tag == "" && digest == "" {
		img.tag = "latest"
	}
	return img, nil
}

// namesRegistry tells whether what stands in front of the first slash is a host.
func namesRegistry(text string) bool {
	host, _, found := strings.Cut(text, "/")
	return found && (strings.ContainsAny(host, ".:") || host == "localhost" || strings.ToLower(host) != host)
}

func validImageName(registry, path string) bool {
	if len(registry)+1+len(path) > 255 {
		return false
	}
	for part := range strings.SplitSeq(path, "/") {
		if !validPathPart(part) {
			return false
		}
	}
	return true
}

// validHost accepts host names, IPv4 and bracketed IPv6 addresses, with a port or
// without.
func validHost(host string) bool {
	if inside, ok := strings.CutPrefix(host, "["); ok {
		address, port, closed := strings.Cut(inside, "]")
		return closed && strings.Contains(address, ":") && strings.Trim(address, "0123456789abcdefABCDEF:") == "" &&
			(port == "" || validPort(port[1:]) && port[0] == ':')
	}
	name, port, hasPort := strings.Cut(host, ":")
	if hasPort && !validPort(port) {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if c := label[i]; c != '-' && !isAlphanumeric(c) {
				return false
			}
		}
	}
	return true
}

func validPort(port string) bool { return port != "" && datum.CountDigits(port) == len(port) }

// validPathPart accepts lower-case letters and digits, with one dot, one or two
// underscores, or any number of dashes between them.
func validPathPart(part string) bool {
	if part == "" || !isLowerAlphanumeric(part[0]) || !isLowerAlphanumeric(part[len(part)-1]) {
		return false
	}
	for i := 0; i < len(part); {
		if isLowerAlphanumeric(part[i]) {
			i++
			continue
		}
		start := i
		for i < len(part) && !isLowerAlphanumeric(part[i]) {
			i++
		}
		separator := part[start:i]
		if separator != "." && separator != "_" && separator != "__" && strings.Trim(separator, "-") != "" {
			return false
		}
	}
	return true
}

func isLowerAlphanumeric(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' }

func validTag(tag string) bool {
	if tag == "" || len(tag) > 128 || !isWordByte(tag[0]) {
		return false
	}
	for i := range len(tag) {
		if c := tag[i]; !isWordByte(c) && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

// validDigest accepts an algorithm that is known and as many hex digits as it has.
func validDigest(digest string) bool {
	algorithm, hex, ok := strings.Cut(digest, ":")
	if !ok || strings.Trim(hex, "0123456789abcdef") != "" {
		return false
	}
	switch algorithm {
	case "sha256":
		return len(hex) == 64
	case "sha384":
		return len(hex) == 96
	case "sha512":
		return len(hex) == 128
	}
	return false
}

func (i image) repository() string {
	if i.registry == "" {
		return i.path
	}
	return i.registry + "/" + i.path
}

// reference is the image as one text, by its digest if it has one.
func (i image) reference() string {
	if i.digest != "" {
		return i.repository() + "@" + i.digest
	}
	return i.repository() + ":" + i.tag
}

// value is what expressions see. Parts that are empty are absent, but for the
// path and the name.
func (i image) value(pointer string) map[string]any {
	m := map[string]any{
		"path": i.path, "name": i.name, "jsonPointer": pointer,
		"reference": i.reference(), "referenceWithTag": i.repository() + ":" + i.tag,
	}
	for key, s := range map[string]string{"registry": i.registry, "tag": i.tag, "digest": i.digest} {
		if s != "" {
			m[key] = s
		}
	}
	return m
}

// An imageExtractor says where in an object images are.
type imageExtractor struct {
	group string   // the key in images
	path  []string // to the maps that hold the images; * for every element
	key   string   // of the field that names an image in its group; "" for the pointer
	value string   // of the field that is the image
	// query finds the image in the field's value; nil for the value itself.
	query *jmespath.Expr
}

// imageExtractors are a rule's own for the kind, or those of pods and their
// controllers.
func imageExtractors(r *policy.Rule, kind string) ([]imageExtractor, error) {
	if own := r.ImageExtractors.Get(kind); own != nil {
		return customExtractors(own)
	}
	var spec []string
	switch kind {
	case "Pod":
		spec = []string{"spec"}
	case "DaemonSet", "Deployment", "Job", "StatefulSet", "ReplicaSet", "ReplicationController":
		spec = []string{"spec", "template", "spec"}
	case "CronJob":
		spec = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	default:
		return nil, nil
	}
	var out []imageExtractor
	for _, group := range []string{"initContainers", "containers", "ephemeralContainers"} {
		out = append(out, imageExtractor{group, append(spec[:len(spec):len(spec)], group, "*"), "name", "image", nil})
	}
	return out, nil
}

func customExtractors(n *policy.Node) ([]imageExtractor, error) {
	var out []imageExtractor
	for _, item := range n.Items {
		text := func(key, otherwise string) string {
			if v := item.Get(key); v != nil && v.Str != "" {
				return v.Str
			}
			return otherwise
		}
		query, err := extractorQuery(item.Get("jmesPath"))
		if err != nil {
			return nil, err
		}
		path := strings.Split(strings.Trim(text("path", ""), "/"), "/")
		value := text("value", "")
		if value == "" {
			value, path = path[len(path)-1], path[:len(path)-1]
		}
		out = append(out, imageExtractor{text("name", "custom"), path, text("key", ""), value, query})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no extractors found for the kind")
	}
	return out, nil
}

func extractorQuery(n *policy.Node) (*jmespath.Expr, error) {
	if n == nil || n.Str == "" {
		return nil, nil
	}
	return parseQuery(n.Str, n.Pos)
}

// imagesOf is the value of images: by group, then by the name of the container.
// nil when the object has none.
func (v *vars) imagesOf(r *policy.Rule, object map[string]any) (map[string]any, error) {
	kind, _ := object["kind"].(string)
	extractors, err := imageExtractors(r, kind)
	if err != nil {
		return nil, err
	}
	images := map[string]any{}
	for _, e := range extractors {
		group := map[string]any{}
		err := e.extract(v, object, nil, func(key string, path []string, text string) error {
			img, err := parseImage(text, v.registry)
			if err == nil {
				group[key] = img.value(pointerTo(path))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(group) == 0 {
			continue
		}
		images[e.group] = merged(images[e.group], group)
	}
	if len(images) == 0 {
		return nil, nil
	}
	return images, nil
}

func pointerTo(path []string) string { return "/" + strings.Join(path, "/") }

// pathTo is where a walk stands: nowhere at its start.
func pathTo(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return pointerTo(path)
}

// An imageVisitor is told of each image, with the key that it has in its group.
type imageVisitor func(key string, path []string, text string) error

// extract walks to the images, each of which is found.
func (e imageExtractor) extract(v *vars, at any, passed []string, found imageVisitor) error {
	if at == nil {
		return nil
	}
	within := func(key string) []string { return append(passed[:len(passed):len(passed)], key) }
	left := e.path[min(len(passed), len(e.path)):]
	if len(left) > 0 && left[0] == "*" {
		switch at := at.(type) {
		case []any:
			for i, item := range at {
				if err := e.extract(v, item, within(strconv.Itoa(i)), found); err != nil {
					return err
				}
			}
		case map[string]any:
			for _, k := range datum.Keys(at) {
				if err := e.extract(v, at[k], within(k), found); err != nil {
					return err
				}
			}
		default:
			return fmt.Errorf("images cannot be found in %s at %s", datum.TypeName(at), pathTo(passed))
		}
		return nil
	}
	m, ok := at.(map[string]any)
	if !ok {
		return fmt.Errorf("images cannot be found in %s at %s", datum.TypeName(at), pathTo(passed))
	}
	if len(left) > 0 {
		return e.extract(v, m[left[0]], within(left[0]), found)
	}
	return e.tell(v, m, within(e.value), found)
}

func (e imageExtractor) tell(v *vars, m map[string]any, path []string, found imageVisitor) error {
	key := pointerTo(path)
	if e.key != "" {
		name, ok := m[e.key].(string)
		if !ok {
			return fmt.Errorf("the image at %s has no %s", pointerTo(path), e.key)
		}
		key = name
	}
	value := m[e.value]
	if e.query != nil && value != nil {
		found, err := v.evaluateOn(e.query, expr.Value{Data: value})
		if err != nil {
			return fmt.Errorf("the jmesPath of the extractor for %s failed: %w", pointerTo(path), err)
		}
		value = found.Data
	}
	text, ok := value.(string)
	if !ok {
		return nil
	}
	return found(key, path, text)
}
