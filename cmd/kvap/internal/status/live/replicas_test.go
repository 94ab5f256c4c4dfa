package live

import (
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/controller"
)

// One replica alone is told of where requests are refused without it.
func TestReplicaNote(t *testing.T) {
	read := func(text string) unstructured.Unstructured {
		u := unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		return u
	}
	fails := map[admissionregistrationv1.ServiceReference]int{}
	countFails(read(`
webhooks:
- {name: a, failurePolicy: Fail, clientConfig: {service: {name: kvap, namespace: kvap-system, path: /validate/fail}}}
- {name: b, failurePolicy: Ignore, clientConfig: {service: {name: kvap, namespace: kvap-system, path: /validate/ignore}}}
- {name: c, failurePolicy: Fail, clientConfig: {url: "https://here"}}
`), fails)
	service := admissionregistrationv1.ServiceReference{Namespace: "kvap-system", Name: "kvap"}
	if len(fails) != 1 || fails[service] != 1 {
		t.Fatalf("%v", fails)
	}
	slices := func(ready ...string) int {
		text := "endpoints:\n- {addresses: [10.0.0.9], conditions: {ready: false}}\n"
		for _, address := range ready {
			text += "- {addresses: [" + address + "], conditions: {ready: true}}\n"
		}
		return readyEndpoints([]unstructured.Unstructured{read(text), read(text)})
	}
	if n := slices("10.0.0.1", "10.0.0.2"); n != 2 || replicaNote(service, 1, n) != "" {
		t.Errorf("%d replicas: %q", n, replicaNote(service, 1, n))
	}
	if note := replicaNote(service, 1, slices("10.0.0.1")); !strings.Contains(note, "one replica answers at the Service kvap-system/kvap") || !strings.Contains(note, "1 of its entries is with failurePolicy Fail") {
		t.Errorf("one replica: %q", note)
	}
	if note := replicaNote(service, 2, slices()); !strings.Contains(note, "no replica answers") {
		t.Errorf("none: %q", note)
	}
}

// An instance that stands by is told of while it says so.
func TestStandingByNote(t *testing.T) {
	now := time.Now()
	at := func(ago time.Duration) metav1.MicroTime { return metav1.NewMicroTime(now.Add(-ago)) }
	for name, tt := range map[string]struct {
		event eventsv1.Event
		told  bool
	}{
		"a moment ago":          {eventsv1.Event{ReportingController: controller.Manager, EventTime: at(time.Minute)}, true},
		"again a moment ago":    {eventsv1.Event{ReportingController: controller.Manager, EventTime: at(time.Hour), Series: &eventsv1.EventSeries{LastObservedTime: at(time.Minute)}}, true},
		"no more":               {eventsv1.Event{ReportingController: controller.Manager, EventTime: at(time.Hour)}, false},
		"of another controller": {eventsv1.Event{ReportingController: "other", EventTime: at(time.Minute)}, false},
	} {
		tt.event.Namespace = "other"
		if note := standingByNote(&tt.event, now); strings.Contains(note, "the kvap of the namespace other stands by") != tt.told {
			t.Errorf("%s: %q", name, note)
		}
	}
}
