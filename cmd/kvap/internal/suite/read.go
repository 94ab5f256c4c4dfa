package suite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsjson "sigs.k8s.io/json"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/manifest"
)

// A Suite is a test of the Kyverno command line, as written.
type Suite struct {
	File string
	Pos  diag.Pos
	Name string
	form
	// places are where the entries of lists begin, by key and index.
	places map[string][]diag.Pos
}

// form is what a suite may hold. Fields that nothing here acts on are there so
// that they are known.
type form struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	OldName    string         `json:"name"`

	Policies         []string `json:"policies"`
	Resources        []string `json:"resources"`
	TargetResources  []string `json:"targetResources"`
	ClusterResources []string `json:"clusterResources"`
	Variables        string   `json:"variables"`
	UserInfo         string   `json:"userinfo"`
	Context          string   `json:"context"`
	Exceptions       []string `json:"exceptions"`
	Values           *values  `json:"values"`
	Results          []Row    `json:"results"`
	Checks           []any    `json:"checks"`
	ParamResources   []string `json:"paramResources"`
	JSONPayload      string   `json:"jsonPayload"`
	JSONPayloads     []string `json:"jsonPayloads"`
	answers
}

// A Row is one entry of a suite's results.
type Row struct {
	Policy        string         `json:"policy"`
	Rule          string         `json:"rule"`
	Kind          string         `json:"kind"`
	Namespace     string         `json:"namespace"`
	Resource      string         `json:"resource"`
	Resources     []string       `json:"resources"`
	ResourceSpecs []ResourceSpec `json:"resourceSpecs"`
	Result        string         `json:"result"`
	Status        string         `json:"status"` // of old suites
	Operation     string         `json:"operation"`

	PatchedResource     string   `json:"patchedResource"`
	PatchedResources    string   `json:"patchedResources"`
	GeneratedResource   string   `json:"generatedResource"`
	GeneratedResources  []string `json:"generatedResources"`
	CloneSourceResource string   `json:"cloneSourceResource"`
	CloneSources        []string `json:"cloneSourceResources"`
	// FailOnMissing says of a resource that the file with the patched ones lacks what is so
	// here in any case: the row fails.
	FailOnMissing bool `json:"failOnMissingResources"`

	NativePolicy          bool `json:"isValidatingAdmissionPolicy"`
	NativeMutating        bool `json:"isMutatingAdmissionPolicy"`
	ValidatingPolicy      bool `json:"isValidatingPolicy"`
	ImageValidatingPolicy bool `json:"isImageValidatingPolicy"`
	MutatingPolicy        bool `json:"isMutatingPolicy"`
	GeneratingPolicy      bool `json:"isGeneratingPolicy"`
	DeletingPolicy        bool `json:"isDeletingPolicy"`
	NamespacedValidating  bool `json:"isNamespacedValidatingPolicy"`

	wrong bool // it has an error that has been told
}

// A ResourceSpec names a resource in full; what is empty is any.
type ResourceSpec struct {
	Group       string `json:"group"`
	Version     string `json:"version"`
	APIVersion  string `json:"apiVersion"`
	Kind        string `json:"kind"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
}

// names are the resources that a row lists by name; nil means all of its kind.
func (r Row) names() []string {
	if r.Resource != "" {
		return append([]string{r.Resource}, r.Resources...)
	}
	return r.Resources
}

// Expected is the result that the row asks for.
func (r Row) Expected() string {
	if r.Result == "" {
		return r.Status
	}
	return r.Result
}

// Read reads the suites of a file. Documents of other kinds are passed over.
func Read(file string) ([]*Suite, diag.List) {
	data, err := readFile(file)
	name := filepath.ToSlash(file)
	if err != nil {
		return nil, diag.List{unreadable(diag.Pos{File: name}, err)}
	}
	objects, found := manifest.Read(name, data)
	places := documentPlaces(name, data)
	var out []*Suite
	for _, o := range objects {
		if o.Kind() != "" && o.Kind() != "Test" {
			found = append(found, diag.Notef(o.Pos, diag.OtherKind, "a %s is no test; it is passed over", o.Kind()))
			continue
		}
		s, ds := readSuite(o, places[o.Pos.Line])
		found = append(found, ds...)
		if s != nil {
			s.File = file
			out = append(out, s)
		}
	}
	return out, found
}

// sizeLimit is the most that a file of a suite may have, in bytes. Its paths lead
// anywhere, and a device has no end.
const sizeLimit = 10 << 20

func readFile(file string) ([]byte, error) {
	if info, err := os.Stat(file); err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0 {
		return nil, fmt.Errorf("%s: this is no file but a pipe or a socket, and might never end", filepath.ToSlash(file))
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, sizeLimit+1))
	if err == nil && len(data) > sizeLimit {
		return nil, fmt.Errorf("%s: the file is larger than 10 MiB; split it", filepath.ToSlash(file))
	}
	return data, err
}

func unreadable(pos diag.Pos, err error) diag.Diagnostic {
	var p *os.PathError
	if errors.As(err, &p) {
		err = fmt.Errorf("%s: %w", filepath.ToSlash(p.Path), p.Err)
	}
	return diag.Errorf(pos, diag.BadSuite, "%v", err)
}

func readSuite(o manifest.Object, places map[string][]diag.Pos) (*Suite, diag.List) {
	s := &Suite{Pos: o.Pos, places: places}
	found := decode(o, &s.form, places)
	if found.HasErrors() {
		return nil, found
	}
	s.Name = o.Meta("name")
	if s.Name == "" {
		s.Name = s.OldName
	}
	if len(s.Results) == 0 && len(s.Checks) == 0 {
		found = append(found, diag.Warnf(o.Pos, diag.BadSuite, "the suite has no results, so it tests nothing"))
	}
	for i := range s.Results {
		r := &s.Results[i]
		ds := r.check(s.place("results", i))
		r.wrong = ds.HasErrors()
		found = append(found, ds...)
	}
	return s, found
}

// check tells what is wrong with a row by itself.
func (r Row) check(pos diag.Pos) (found diag.List) {
	if !slices.Contains([]string{"pass", "fail", "skip", "warn", "error"}, r.Expected()) {
		found = append(found, diag.Errorf(pos, diag.BadSuite, "the result %q is not pass, fail, skip, warn or error", r.Expected()))
	}
	if r.Operation != "" && !slices.Contains([]string{"CREATE", "UPDATE", "DELETE", "CONNECT"}, r.Operation) {
		found = append(found, diag.Errorf(pos, diag.BadSuite, "the operation %q is not CREATE, UPDATE, DELETE or CONNECT", r.Operation))
	}
	if r.Policy == "" {
		found = append(found, diag.Errorf(pos, diag.BadSuite, "the result names no policy"))
	}
	return found
}

// decode fills a form. Keys that it does not know are warnings: suites are written
// for many versions of the Kyverno command line.
func decode(o manifest.Object, into any, places map[string][]diag.Pos) (found diag.List) {
	data, err := json.Marshal(o.Value)
	if err != nil {
		return diag.List{diag.Errorf(o.Pos, diag.BadSuite, "%v", err)}
	}
	unknown, err := sigsjson.UnmarshalStrict(data, into)
	if err != nil {
		return diag.List{misfit(o, err, places)}
	}
	for _, u := range unknown {
		found = append(found, diag.Warnf(placeOf(o.Pos, places, u.Error()), diag.UnknownKey, "%v; it is passed over", u))
	}
	return found
}

// misfit tells of a value of the wrong type.
func misfit(o manifest.Object, err error, places map[string][]diag.Pos) diag.Diagnostic {
	var typed *json.UnmarshalTypeError
	if !errors.As(err, &typed) {
		return diag.Errorf(o.Pos, diag.BadSuite, "the %s cannot be read: %v", word(o), err)
	}
	pos := o.Pos
	key, _, _ := strings.Cut(typed.Field, ".")
	if list := places[key]; len(list) > 0 {
		pos = list[0]
	}
	want := map[reflect.Kind]string{reflect.Slice: "a list", reflect.Map: "a map", reflect.Struct: "a map", reflect.String: "a text", reflect.Bool: "true or false"}[typed.Type.Kind()]
	return diag.Errorf(pos, diag.BadSuite, "%s is of type %s; it should be %s", typed.Field, typed.Value, want)
}

func word(o manifest.Object) string {
	if o.Kind() == "" {
		return "document"
	}
	return o.Kind()
}

// placeOf is the entry of a list that a message such as unknown field
// "results[2].x" is about.
func placeOf(otherwise diag.Pos, places map[string][]diag.Pos, message string) diag.Pos {
	_, path, _ := strings.Cut(message, `"`)
	var i int
	key, rest, ok := strings.Cut(path, "[")
	if !ok {
		return otherwise
	}
	if _, err := fmt.Sscanf(rest, "%d]", &i); err != nil || i >= len(places[key]) {
		return otherwise
	}
	return places[key][i]
}

// place is that of an entry of a list; that of the suite if there is none.
func (s *Suite) place(key string, i int) diag.Pos {
	if list := s.places[key]; i < len(list) {
		return list[i]
	}
	return s.Pos
}

// documentPlaces are the places of the entries of all lists at the top of a file's
// documents, by the documents' first lines. A file that has none is no matter: it
// has been read by another parser.
func documentPlaces(file string, data []byte) map[int]map[string][]diag.Pos {
	out := map[int]map[string][]diag.Pos{}
	d := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		if err := d.Decode(&doc); err != nil {
			if errors.Is(err, io.EOF) {
				return out
			}
			return out
		}
		if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
			continue
		}
		top := doc.Content[0]
		places := map[string][]diag.Pos{}
		for i := 0; i+1 < len(top.Content); i += 2 {
			key, value := top.Content[i], top.Content[i+1]
			if value.Kind == yaml.ScalarNode {
				places[key.Value] = []diag.Pos{{File: file, Path: key.Value, Line: value.Line, Col: value.Column}}
			}
			if value.Kind != yaml.SequenceNode {
				continue
			}
			for n, item := range value.Content {
				places[key.Value] = append(places[key.Value], diag.Pos{
					File: file, Path: fmt.Sprintf("%s[%d]", key.Value, n), Line: item.Line, Col: item.Column,
				})
			}
		}
		out[top.Line] = places
	}
}
