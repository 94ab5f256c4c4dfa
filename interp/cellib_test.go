package interp

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"
)

// kyvernoWorld is a world for Kyverno's functions.
func kyvernoWorld() *Offline {
	return &Offline{
		Time: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		Answers: map[string][]byte{
			"/api/v1/namespaces/team/configmaps/c":              []byte(`{"data": {"k": "v"}, "n": 1}`),
			"/apis/apps/v1/deployments":                         []byte(`{"items": [{"metadata": {"name": "d"}}]}`),
			"/apis/apps/v1/namespaces/team/deployments/d/scale": []byte(`{"spec": {"replicas": 2}}`),
			"/api/v1/pods?labelSelector=a%3Db":                  []byte(`{"items": []}`),
			"/apis/a/v1/reviews":                                []byte(`{"status": {"allowed": true}}`),
			"/apis/a/v1/namespaces/team/reviews":                []byte(`{"status": {"allowed": false}}`),
			"https://service/x":                                 []byte(`{"ok": true, "n": 2}`),
			"https://service/list":                              []byte(`[1]`),
			"https://service/text":                              []byte(`hello`),
		},
		Globals:  map[string]any{"g": []any{"b"}, "g.names": []any{"a"}},
		Images:   map[string]map[string]any{"nginx": {"resolvedImage": "r", "manifestList": nil, "configData": map[string]any{"config": map[string]any{"User": "1"}}}},
		Plural:   func(_, kind string) string { return strings.ToLower(kind) + "s" },
		Complete: true,
	}
}

func TestKyvernoFunctions(t *testing.T) {
	for _, expression := range []string{
		"resource.Get('v1', 'configmaps', 'team', 'c').data.k == 'v'",
		"resource.get('v1', 'configmaps', 'team', 'c').n == 1",
		"resource.get('v1', 'configmaps', 'team', 'none').?data.k.orValue('z') == 'z'",
		"type(resource.get('v1', 'configmaps', 'team', 'none')) == type(null)",
		"resource.get('apps/v1', 'deployments/scale', 'team', 'd').spec.replicas == 2",
		"resource.get(resource.toGVR('v1', 'ConfigMap'), 'team', 'c').data.k == 'v'",
		"resource.ToGVR('v1', 'ConfigMap') == resource.toGVR('v1', 'ConfigMap')",
		"resource.List('apps/v1', 'deployments', '').items.exists(d, d.metadata.name == 'd')",
		"resource.list(resource.ToGVR('apps/v1', 'Deployment'), '').items.size() == 1",
		"resource.List('v1', 'pods', '', {'a': 'b'}).items.size() == 0",
		"resource.post('a/v1', 'reviews', {'spec': {'a': 'b'}}).status.allowed == true",
		"resource.Post('a/v1', 'reviews', 'team', {'spec': {'a': 'b'}}).status.allowed == false",
		"http.Get('https://service/x').ok == true",
		"http.get('https://service/x').statusCode == 200 && type(http.get('https://service/x').n) == double",
		"http.get('https://service/list').body == [1.0] && http.get('https://service/text').body == null",
		"http.Post('https://service/x', {'a': [1, 2], 'b': [3]}).ok == true",
		"http.Get('https://service/x', {'h': 'v'}).ok == true",
		"http.Client('').get('https://service/x').ok && http.client('x').Post('https://service/x', 1, {'h': 'v'}).ok",
		"globalContext.Get('g', 'names')[0] == 'a' && globalContext.get('g')[0] == 'b' && globalContext.get('g', '')[0] == 'b'",
		"globalContext.get('none') == null && globalContext.get('none', 'x') == null",
		"image.GetMetadata('nginx').config.config.User == '1' && image.getMetadata('nginx').tag == 'latest'",
		"!('imageIndex' in image.getMetadata('nginx'))",
		"['nginx'].all(image, image.startsWith('nginx'))",
		"image('ghcr.io/a/b:1').registry() == 'ghcr.io'",
		"image('ghcr.io/a/b:1').repository() == 'a/b' && image('ghcr.io/a/b:1').tag() == '1' && image('nginx').identifier() == 'latest'",
		"parseImageReference('nginx').registry() == 'index.docker.io' && image('nginx').repository() == 'library/nginx'",
		"image('nginx') == image('docker.io/library/nginx:latest') && !image('nginx').containsDigest() && image('nginx').digest() == ''",
		"isImage('nginx') && !isImage('a b') && !isImage('')",
		"parseServiceAccount('system:serviceaccount:ns:sa') == {'Name': 'sa', 'Namespace': 'ns'}",
		"user.parseServiceAccount('alice').Name == ''",
		"md5('a').size() == 32 && sha1('a').size() == 40 && sha256('a').size() == 64",
		"hash.md5('a') == md5('a') && hash.sha1('a') == sha1('a') && hash.sha256('a') == sha256('a')",
		"math.round(3.14159, 2) == 3.14 && math.round(-2.5, 0) == -3.0 && math.round(1234.0, -2) == 1200.0 && math.round(1.5) == 2.0",
		"math.greatest(1, 2) == 2 && base64.encode(b'a') == 'YQ==' && cel.bind(x, 1, x + 1) == 2 && regex.replace('aa', 'a', 'b') == 'bb'",
		"json.unmarshal('{\"a\": [1]}').a[0] == 1 && type(json.unmarshal('1')) == double",
		"json.marshal({'b': [1, 2], 'a': [3]}) == '{\"a\":[3],\"b\":[1,2]}' && json.marshal('<').size() == 8",
		"yaml.parse('a: b').a == 'b' && type(yaml.parse('1')) == double",
		"random('[a]{3}') == 'aaa' && random().matches('^[0-9a-z]{8}$') && random.random().size() == 8 && random.random('x') == 'x'",
		"listObjToMap([{'n': 'a'}], [{'v': 1}], 'n', 'v') == {'a': 1}",
		"transform.listObjToMap([{'n': 'a'}], [{'v': 1}], 'n', 'z') == {'a': null}",
		"gzip.decompress(gzip.compress('text')) == 'text'",
		"time.now() == timestamp('2026-03-04T05:06:07Z')",
		"time.truncate(time.now(), duration('1h')) == timestamp('2026-03-04T05:00:00Z')",
		"time.toCron(time.now()) == '6 5 4 3 3'",
	} {
		if got := validates(t, expression, kyvernoWorld()); got.Status != Pass {
			t.Errorf("%s: %s (%s)", expression, got.Status, got.Message)
		}
	}
	for _, tt := range []struct{ expression, message string }{
		{"resource.Get('v1', 'pods', 'a', 'b') == null", "no matching overload"}, // the type is a map
		{"resource.list('v1', 'pods', 'a').items == []", "there is no answer for"},
		{"resource.post('a/v1', 'none', {}) == {}", "there is no answer for"},
		{"image.GetMetadata('redis') == {}", "nothing is known of the image redis"},
		{"image('a b').tag() == ''", "could not parse reference"},
		{"listObjToMap([{}], [], 'n', 'v') == {}", "as many"},
		{"listObjToMap([dyn(1)], [{}], 'n', 'v') == {}", "no such overload"},
		{"listObjToMap([{}], [{}], 'n', 'v') == {}", "no key"},
		{"math.round(1.0, -400) == 1.0", "places"},
		{"x509.decode('a') == {}", "no PEM block"},
		{"json.unmarshal(1) == {}", "must be a string"},
		{"gzip.decompress(b'a') == ''", "gzip.decompress"},
		{"jsonpatch.escapeKey('a') == ''", "undeclared reference"},        // no mutating policy
		{"resource.get('v1', 'pods', 'b') == {}", "no matching overload"}, // of a policy of a namespace
		{"sha256('a') == ''", "bad"},
	} {
		got := validates(t, tt.expression, kyvernoWorld())
		if got.Status != Error && got.Status != Fail || !strings.Contains(got.Message, tt.message) {
			t.Errorf("%s: %s (%s), want %q", tt.expression, got.Status, got.Message, tt.message)
		}
	}
}

// A decoded certificate has its fields under Go's names, and no subject.
func TestDecodeCertificate(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "example"}, DNSNames: []string{"a.example"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	text := strconv.Quote(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	text = strings.ReplaceAll(text, `\n`, `\\n`) // once more, for YAML
	got := validates(t, "x509.decode("+text+").DNSNames[0] == 'a.example' && !('Subject' in x509.decode("+text+")) && x509.decode("+text+").PublicKey.E == 65537.0", kyvernoWorld())
	if got.Status != Pass {
		t.Errorf("%s (%s)", got.Status, got.Message)
	}
}

// Chance comes from the world alone, so that it can be repeated.
func TestRandomIsRepeatable(t *testing.T) {
	texts := map[string]bool{}
	for range 2 {
		source := validatingPolicy(`validations: [{expression: "false", messageExpression: "random('[a-z]{20}')"}]`)
		texts[judgeOne(t, source, &Request{Admission: create(object(t, `{metadata: {name: w}}`))}, &Offline{Seed: 3}).Message] = true
	}
	if len(texts) != 1 {
		t.Errorf("%v", texts)
	}
}
