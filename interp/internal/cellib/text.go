package cellib

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/cel-go/cel"
)

// textFunctions read and write texts: hashes, JSON, YAML, certificates, compression.
func textFunctions() []libraryFunction {
	texts := []*cel.Type{textType()}
	out := []libraryFunction{
		{names: []string{"json.unmarshal"}, args: []*cel.Type{cel.DynType}, result: cel.DynType, call: decoded("parse_json")},
		{names: []string{"json.marshal"}, args: []*cel.Type{cel.DynType}, result: textType(), call: func(_ asker, args []any) (any, error) {
			out, err := json.Marshal(args[0])
			return string(out), err
		}},
		{names: []string{"yaml.parse"}, args: texts, result: cel.DynType, call: decoded("parse_yaml")},
		{names: []string{"x509.decode"}, args: texts, result: cel.DynType, has: notImages, call: certificate},
		{names: []string{"gzip.compress"}, args: []*cel.Type{cel.DynType}, result: cel.BytesType, call: compress},
		{names: []string{"gzip.decompress"}, args: []*cel.Type{cel.BytesType}, result: textType(), call: decompress},
		{names: []string{"jsonpatch.escapeKey"}, args: texts, result: textType(), has: onlyMutating, call: func(_ asker, args []any) (any, error) {
			return strings.NewReplacer("~", "~0", "/", "~1").Replace(args[0].(string)), nil
		}},
	}
	for _, hash := range []string{"md5", "sha1", "sha256"} {
		out = append(out, libraryFunction{names: []string{hash, "hash." + hash}, args: texts, result: textType(), call: same(hash)})
	}
	return out
}

// decoded is what a function of JMESPath reads from a text, with each number a double.
func decoded(function string) call {
	return func(w asker, args []any) (any, error) {
		if _, ok := args[0].(string); !ok {
			return nil, errors.New("the argument must be a string")
		}
		value, err := w.Call(function, args[0])
		return doubles(value), err
	}
}

// certificate decodes a certificate, which has no Subject here, or a request for one.
func certificate(w asker, args []any) (any, error) {
	value, err := w.Call("x509_decode", args[0])
	if err != nil {
		return nil, err
	}
	out, ok := doubles(value).(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the certificate is no object")
	}
	if block, _ := pem.Decode([]byte(args[0].(string))); block != nil && block.Type == "CERTIFICATE" {
		delete(out, "Subject")
	}
	return out, nil
}

func compress(_ asker, args []any) (any, error) {
	var in []byte
	switch value := args[0].(type) {
	case string:
		in = []byte(value)
	case []byte:
		in = value
	default:
		return nil, errors.New("the argument must be a string or bytes")
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(in); err != nil {
		return nil, err
	}
	err := w.Close()
	return out.Bytes(), err
}

// maxText bounds what comes out of few bytes.
const maxText = 10 << 20

func decompress(_ asker, args []any) (any, error) {
	r, err := gzip.NewReader(bytes.NewReader(args[0].([]byte)))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(r, maxText+1))
	if err == nil && len(out) > maxText {
		return nil, fmt.Errorf("the text has more than %d bytes", maxText)
	}
	return string(out), err
}
