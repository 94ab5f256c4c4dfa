package evaluate

import (
	"errors"
	"fmt"
	"iter"
	"os"

	kjson "k8s.io/apimachinery/pkg/util/json"
	sigsjson "sigs.k8s.io/json"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/internal/judge"
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
