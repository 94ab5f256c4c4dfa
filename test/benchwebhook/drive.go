package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// drive has clients send requests until there were enough or the time is up.
func (c *child) drive(ctx context.Context, clients int, pause time.Duration, p runBounds) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	out := sample{clients: clients, pause: pause}
	var mu sync.Mutex
	var failed error
	var sent atomic.Int64
	var all sync.WaitGroup
	processor, begin := processorOf(c.pid), time.Now()
	for i := range clients {
		all.Go(func() {
			wait(ctx, pause*time.Duration(i)/time.Duration(clients)) // so that not all send at once
			var times []time.Duration
			var err error
			for err == nil && ctx.Err() == nil && sent.Add(1) <= int64(p.requests) {
				start := time.Now()
				if err = c.ask(ctx); err == nil {
					times = append(times, time.Since(start))
				}
				wait(ctx, pause)
			}
			mu.Lock()
			defer mu.Unlock()
			out.times = append(out.times, times...)
			if err != nil && ctx.Err() == nil {
				failed = err
			}
		})
	}
	all.Wait()
	out.took, out.memory, out.processor = time.Since(begin), memoryOf(c.pid), processorOf(c.pid)-processor
	if failed == nil && len(out.times) == 0 {
		failed = errors.New("nothing was answered")
	}
	slices.Sort(out.times)
	return out, failed
}

func wait(ctx context.Context, d time.Duration) {
	if d == 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// ask sends the Deployment, which must be admitted.
func (c *child) ask(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader([]byte(review)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	answer, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(`"allowed":true`))) {
		err = fmt.Errorf("%s: %s", response.Status, answer)
	}
	return err
}

// review is a Deployment of two containers, as the API server sends it.
const review = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002",
"kind":{"group":"apps","version":"v1","kind":"Deployment"},"resource":{"group":"apps","version":"v1","resource":"deployments"},
"requestKind":{"group":"apps","version":"v1","kind":"Deployment"},"requestResource":{"group":"apps","version":"v1","resource":"deployments"},
"name":"web","namespace":"shop","operation":"CREATE","userInfo":{"username":"alice","uid":"1","groups":["dev","system:authenticated"]},
"object":{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","namespace":"shop","creationTimestamp":null,
"labels":{"team":"blue","tier":"front","app":"web"},"annotations":{"acme.io/owner":"alice"},
"managedFields":[{"manager":"kubectl","operation":"Update","apiVersion":"apps/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1",
"fieldsV1":{"f:metadata":{"f:labels":{"f:team":{},"f:tier":{},"f:app":{}}},"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:spec":{"f:containers":{}}}}}}]},
"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"creationTimestamp":null,"labels":{"app":"web","team":"blue"}},
"spec":{"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},"restartPolicy":"Always","dnsPolicy":"ClusterFirst",
"schedulerName":"default-scheduler","terminationGracePeriodSeconds":30,"volumes":[{"name":"cache","emptyDir":{}},{"name":"settings","configMap":{"name":"web","defaultMode":420}}],
"containers":[{"name":"web","image":"ghcr.io/acme/web:1.4.2","ports":[{"containerPort":8080,"protocol":"TCP"}],
"env":[{"name":"A","value":"1"},{"name":"B","value":"2"},{"name":"C","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}],
"resources":{"limits":{"cpu":"500m","memory":"256Mi"},"requests":{"cpu":"100m","memory":"128Mi"}},
"livenessProbe":{"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},
"readinessProbe":{"httpGet":{"path":"/readyz","port":8080,"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},
"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent",
"securityContext":{"privileged":false,"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}},
{"name":"proxy","image":"ghcr.io/acme/proxy:2.0.0","resources":{"limits":{"cpu":"200m","memory":"64Mi"},"requests":{"cpu":"50m","memory":"32Mi"}},
"livenessProbe":{"tcpSocket":{"port":9000},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},
"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent",
"securityContext":{"privileged":false,"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}]}},
"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}},"revisionHistoryLimit":10,"progressDeadlineSeconds":600},"status":{}},
"oldObject":null,"dryRun":false,"options":{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"kubectl"}}}`
