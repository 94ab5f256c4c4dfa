package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/kvap/kvap/controller/webhook"
	"github.com/kvap/kvap/controller/webhook/certs"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

//go:embed policies.yaml
var policies []byte

// serve is the server. It says where it is and what to trust it by, and ends when its
// input does.
func serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f, ds := policy.Parse("policies.yaml", policies)
	if ds.HasErrors() {
		return ds[0]
	}
	authority := certs.NewAuthority(certs.Options{Store: &certs.Memory{}, Names: certs.Names{IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}})
	if err := authority.Renew(ctx); err != nil {
		return err
	}
	server := webhook.New(webhook.Options{World: settings(), Certificate: authority.Certificate, Drain: time.Millisecond})
	var set webhook.PolicySet
	for _, p := range f.Policies {
		set.Policies = append(set.Policies, webhook.Policy{Policy: p})
	}
	server.Set(set)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr(), base64.StdEncoding.EncodeToString(authority.Bundle()))
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		cancel()
	}()
	return server.Serve(ctx, l)
}

func settings() *interp.Offline {
	return &interp.Offline{Objects: []map[string]any{{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings", "namespace": "kvap"},
		"data": map[string]any{"tiers": `["front", "back"]`},
	}}}
}

// A child is the server as the clients see it.
type child struct {
	url    string
	client *http.Client
	pid    int
	stop   func()
}

func startServer(ctx context.Context) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-serve")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, err
	}
	address, bundle, _ := strings.Cut(strings.TrimSpace(line), " ")
	pem, err := base64.StdEncoding.DecodeString(bundle)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return &child{
		url: "https://" + address + "/validate/fail?timeout=10s", pid: cmd.Process.Pid,
		client: &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, NextProtos: []string{"http/1.1"}}, MaxIdleConnsPerHost: 1000,
		}},
		stop: func() {
			_ = in.Close()
			_ = cmd.Wait()
		},
	}, nil
}

// memoryOf is what a process holds, in bytes, on Linux.
func memoryOf(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n << 10
		}
	}
	return 0
}

// ticks is how Linux counts processor time.
const ticks = 10 * time.Millisecond

// processorOf is the processor time of a process so far, on Linux.
func processorOf(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * ticks
}
