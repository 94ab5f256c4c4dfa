package evaluate

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"
	sigsjson "sigs.k8s.io/json"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/interp"
)

// A question is something to judge. Read is called by several goroutines at once,
// for different inputs. It gives no request where there is an error.
type question struct {
	pos  diag.Pos
	read func() (id string, request *judge.Request, found diag.List)
}

// inputs are what the flags ask to be judged.
func (e *Evaluation) inputs() (iter.Seq2[question, error], error) {
	if len(e.options.Requests) > 0 {
		return e.options.requests()
	}
	list, err := e.resourceInputs()
	if err == nil && len(e.options.Documents) > 0 {
		list, err = e.documentInputs()
	}
	return func(yield func(question, error) bool) {
		for _, in := range list {
			if !yield(in, nil) {
				return
			}
		}
	}, err
}

// requests reads recorded requests line by line: there may be more of them
// than memory holds.
func (o Options) requests() (iter.Seq2[question, error], error) {
	for _, path := range o.Requests {
		if path == "-" {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, exit.Usage(fmt.Errorf("--requests: %w", input.PathError(err)))
		}
		if info.IsDir() {
			return nil, exit.Usage(fmt.Errorf("--requests: %s is a folder; name the files in it", path))
		}
	}
	return func(yield func(question, error) bool) {
		for _, path := range o.Requests {
			more := true
			lines, err := input.NewTail([]string{path}, o.Stdin)
			if err == nil {
				err = lines.Each(true, func(text []byte, at diag.Pos) bool {
					more = yield(question{at, requestLine{at, text}.read}, nil)
					return more
				})
			}
			if err != nil {
				more = yield(question{}, err)
			}
			if !more {
				return
			}
		}
	}, nil
}

// A requestLine is a recorded request.
type requestLine struct {
	pos  diag.Pos
	text []byte
}

func (l requestLine) read() (id string, request *judge.Request, found diag.List) {
	fail := func(format string, args ...any) (string, *judge.Request, diag.List) {
		return id, nil, diag.List{diag.Errorf(l.pos, diag.BadRequest, format, args...)}
	}
	var value any
	if err := kjson.Unmarshal(l.text, &value); err != nil {
		if ok, offset := sigsjson.SyntaxErrorOffset(err); ok {
			l.pos.Col = int(offset)
		}
		return fail("the line is no JSON: %v; JSON Lines have one request on each line", err)
	}
	line, ok := value.(map[string]any)
	if !ok {
		return fail("the line is no JSON object; a request is an AdmissionRequest, alone or under the key request")
	}
	id, _ = line["id"].(string)
	admission := line
	if inner, wrapped := line["request"]; wrapped {
		if admission, ok = inner.(map[string]any); !ok {
			return fail("request is no object; it is an AdmissionRequest")
		}
	}
	if id == "" {
		id, _ = admission["uid"].(string)
	}
	request, err := judge.NewRequest(admission)
	if err == nil {
		err = request.Complete()
	}
	if err != nil {
		return fail("%v", err)
	}
	if id == "" {
		id = title(admission)
	}
	if err := surroundings(line, request); err != nil {
		return fail("%v", err)
	}
	return id, request, nil
}

// surroundings reads what a line says besides its request.
func surroundings(line map[string]any, r *judge.Request) error {
	if labels, ok := line["namespaceLabels"]; ok && labels != nil {
		m, ok := labels.(map[string]any)
		if !ok {
			return errors.New("namespaceLabels is no object")
		}
		r.NamespaceLabels = map[string]string{}
		for k, v := range m {
			if r.NamespaceLabels[k], ok = v.(string); !ok {
				return fmt.Errorf("namespaceLabels has a value that is no text, at %q", k)
			}
		}
	}
	if namespace, ok := line["namespaceObject"]; ok && namespace != nil {
		if r.Namespace, ok = namespace.(map[string]any); !ok {
			return errors.New("namespaceObject is no object")
		}
	}
	var err error
	if r.Roles, err = textList(line, "roles"); err != nil {
		return err
	}
	r.ClusterRoles, err = textList(line, "clusterRoles")
	return err
}

func textList(line map[string]any, key string) ([]string, error) {
	v, ok := line[key]
	if !ok || v == nil {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("%s is no list", key)
	}
	out := make([]string, len(list))
	for i, item := range list {
		if out[i], ok = item.(string); !ok {
			return nil, fmt.Errorf("%s has an entry that is no text", key)
		}
	}
	return out, nil
}

// ReadRequest reads a line of recorded requests.
func ReadRequest(line []byte, at diag.Pos) (*judge.Request, error) {
	_, request, found := requestLine{pos: at, text: line}.read()
	if request == nil {
		return nil, errors.New(found.Sort()[0].Message)
	}
	return request, nil
}

// resourceInputs are the resources as requests.
func (e *Evaluation) resourceInputs() ([]question, error) {
	o := e.options
	resources, sources, found, err := input.Manifests("--resource", o.Resources, o.Stdin)
	if err != nil {
		return nil, err
	}
	e.Sources, e.Found = append(e.Sources, sources...), append(e.Found, found...)
	old, sources, found, err := input.Manifests("--old", o.Old, o.Stdin)
	if err != nil {
		return nil, err
	}
	e.Sources, e.Found = append(e.Sources, sources...), append(e.Found, found...)
	client := judge.Client{Schemas: e.schemas, Operation: o.Operation, Namespace: o.Namespace, User: o.User, Groups: o.Groups, Defaults: e.defaults}
	switch {
	case client.Operation == "" && len(o.Old) > 0:
		client.Operation = "UPDATE"
	case client.Operation == "":
		client.Operation = "CREATE"
	}
	var out []question
	for _, one := range resources {
		before := manifest.Object{}
		if i := slices.IndexFunc(old, func(old manifest.Object) bool { return client.Same(one, old) }); i >= 0 {
			before = old[i]
		}
		out = append(out, question{pos: one.Pos, read: func() (string, *judge.Request, diag.List) {
			request, ds := o.request(client, one, before)
			return one.Title(), request, ds
		}})
	}
	return out, nil
}

// documentInputs are the JSON documents, which are no objects of a cluster.
func (e *Evaluation) documentInputs() ([]question, error) {
	sources, found, err := input.Read(e.options.Documents, e.options.Stdin)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("--json: %w", err))
	}
	e.Sources, e.Found = append(e.Sources, sources...), append(e.Found, found...)
	var out []question
	for _, s := range sources {
		texts, lines := manifest.Documents(s.Data)
		switch len(texts) {
		case 0:
			out = append(out, documentInput(s.Name, diag.Pos{File: s.Name, Line: 1, Col: 1}, nil))
		case 1:
			out = append(out, documentInput(s.Name, diag.Pos{File: s.Name, Line: 1, Col: 1}, texts[0]))
		default:
			for i, text := range texts {
				out = append(out, documentInput(fmt.Sprintf("%s:%d", s.Name, lines[i]), diag.Pos{File: s.Name, Line: lines[i], Col: 1}, text))
			}
		}
	}
	return out, nil
}

// documentInput is the question of a document that is no object of a cluster.
func documentInput(id string, at diag.Pos, data []byte) question {
	return question{pos: at, read: func() (string, *judge.Request, diag.List) {
		document, err := manifest.Map(data)
		switch {
		case err != nil:
			return id, nil, diag.List{diag.Errorf(at, diag.BadRequest, "the document is no JSON object: %v", err)}
		case document == nil:
			return id, nil, diag.List{diag.Errorf(at, diag.BadRequest, "the document is empty")}
		}
		return id, judge.NewDocument(document), nil
	}}
}

func (o Options) request(client judge.Client, now, old manifest.Object) (*judge.Request, diag.List) {
	admission, found := client.Request(now, old)
	if admission == nil {
		return nil, found
	}
	request, err := judge.NewRequest(admission)
	if err != nil {
		return nil, append(found, diag.Errorf(now.Pos, diag.BadRequest, "%s: %v", now.Title(), err))
	}
	request.Roles, request.ClusterRoles = o.Roles, o.ClusterRoles
	return request, found
}

// title names a request that has no id.
func title(r map[string]any) string {
	kind, _ := r["kind"].(map[string]any)
	words := []string{fmt.Sprint(kind["kind"])}
	for _, key := range []string{"namespace", "name"} {
		if s, _ := r[key].(string); s != "" {
			words = append(words, s)
		}
	}
	return strings.Join(words, "/")
}

// readObjects reads what rules look up. A Context of the Kyverno command line
// counts as the objects in it, and as the answers.
func (e *Evaluation) readObjects() error {
	objects, sources, found, err := input.Manifests("--param", e.options.Lookups, e.options.Stdin)
	if err != nil {
		return err
	}
	e.Sources = append(e.Sources, sources...)
	e.Found = append(e.Found, found...)
	for _, o := range objects {
		if o.Kind() == "" || o.APIVersion() == "" {
			e.Found = append(e.Found, diag.Errorf(o.Pos, diag.BadRequest, "the object has no kind or no apiVersion; rules cannot look it up"))
			continue
		}
		if err := e.readObject(o); err != nil {
			e.Found = append(e.Found, diag.Errorf(o.Pos, diag.BadRequest, "%v", err))
		}
	}
	return nil
}

// readObject reads an object that rules look up, or a Context.
func (e *Evaluation) readObject(o manifest.Object) error {
	e.objects = append(e.objects, o.Objects()...)
	if !o.IsContext() {
		return nil
	}
	text, err := json.Marshal(o.Value["spec"])
	if err != nil {
		return err
	}
	var context judge.Context
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(text, &context); err != nil {
		return fmt.Errorf("the Context cannot be read: %w", err)
	}
	e.contexts = append(e.contexts, context)
	return nil
}

// world is what the interpreter asks.
func (e *Evaluation) world() *interp.Offline {
	w := judge.World(e.objects, e.schemas)
	w.Images = map[string]map[string]any{}
	if e.options.Registry != nil {
		w.Proofs, w.Metadata = e.options.Registry, e.options.Registry.Image
	}
	for _, c := range e.contexts {
		maps.Copy(w.Images, c.ImageData())
		c.Give(w)
	}
	return w
}
