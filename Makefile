# Every target is a word and a promise. Only Go, make, git and a C compiler (for
# the race detector) are needed; the tools come from tools/lint.mod.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

# grpc's tracing pages have a template in the program, and a template may call any
# method: with none, the linker leaves out those that nothing calls, a third of it all.
export GOFLAGS := $(strip $(GOFLAGS) -tags=grpcnotrace)

# Paths stay in it, so that tests and lint find the same packages in the build cache; what is
# released has none.
BUILD := go build -ldflags '-s -w' -o bin/
TOOL := go tool -modfile=tools/lint.mod
HELM := go tool -modfile=tools/helm.mod helm
FUZZTIME ?= 1m
CORPUS ?= ../shared/corpus

# The version of Kubernetes that runs where one is needed: the name of a folder in
# test/controlplane/servers, or nothing for the one that CI takes.
KUBERNETES ?=
ifneq ($(KUBERNETES),)
export KVAP_KUBERNETES := $(KUBERNETES)
endif

.PHONY: help demo build platforms screenshot plot test e2e e2e-oldest e2e-conformance e2e-fixtures budget e2e-kyverno bench-admission bench-webhook bench-cluster bench-scan lint check generated generate chart release image golden conformance reach worth bench fuzz clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

demo: ## build kvap, convert a dozen example policies, show one before and after
	@echo "# Building bin/kvap. The first time go compiles Kubernetes' libraries too: some six minutes on two cores, after that seconds."
	@GOFLAGS='$(GOFLAGS) -v' $(BUILD) ./cmd/kvap 2>&1 | awk '/^[a-z0-9.-]+(\/|$$)/ && !/:/ {printf "\r# %d packages", ++n; fflush(); next} {print} END {if (n) print ""}'
	@./fixtures/demo.sh bin/kvap

build: ## build bin/kvap, bin/kvap-controller and bin/kvap-dev
	$(BUILD) ./cmd/...

# The other platform that is built most differently: a minute and a half of two processors
# without a build cache. TestPlatforms checks the types of all, a release builds them all.
PLATFORMS ?= windows/amd64

platforms: ## build for PLATFORMS, of which nothing is kept
	for p in $(PLATFORMS); do CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build -o /dev/null ./cmd/kvap; done

screenshot: build ## the HTML report of the fixture policies as a picture, in docs/report.png; needs chromium
	./fixtures/screenshot.sh bin/kvap docs/report.png

plot: ## draw docs/latency.svg from the table in docs/performance.md, docs/plan.svg from a script
	go run ./test/benchadmission/plot
	go run ./tools/terminal

# A fifth of the work would be to collect garbage: of the linker, and of programs that
# live for seconds. They fit into memory with more of it, up to a limit for each.
test: ## unit, golden, script and import tests: no cluster, no network but for the modules of go.mod, once
	GOGC=off GOMEMLIMIT=1GiB go test ./...

# Tests with a control plane wait most of the time, so more of them run at once than
# there are cores, those that take longest first. The servers are built before, so that the
# time that tests have is theirs.
E2E := go run ./tools/servers && KVAP_PROGRAMS=$(CURDIR)/bin go test -count=1 -tags e2e,grpcnotrace

e2e: build ## all that needs a real control plane, KUBERNETES=1.37.2 for another one; its first build takes several minutes
	$(E2E) -p 3 -timeout 40m $(addprefix ./test/e2e/,controller migrate webhook replay) ./test/e2e/... ./test/controlplane

e2e-oldest: build ## that the API server of Kubernetes 1.30 takes what convert writes for it, and judges the same
	export KVAP_KUBERNETES=1.30.14; $(E2E) -timeout 40m ./test/e2e

budget: ## that no guard stops what its validations take, up to the largest objects: three minutes
	go test -count=1 -timeout 60m ./fixtures -run TestBudget -long

e2e-fixtures: build ## the policies of all fixtures go the whole way of a migration: ten minutes
	$(E2E) -timeout 40m ./test/e2e/migrate -run TestFixtures -fixtures

e2e-conformance: build ## run Kyverno's own cluster tests of the corpus, into docs/conformance.md: a quarter of an hour
	$(E2E) -timeout 90m -parallel 3 ./test/e2e/replay -run TestConformance -corpus $(abspath $(CORPUS)) -conformance -clusters 3 -update

e2e-kyverno: build ## the way of docs/migration.md off a real Kyverno, twice, with kills: its first build takes twenty minutes
	for kills in false true; do \
	  KVAP_PROGRAMS=$(CURDIR)/bin go test -count=1 -tags e2e,kyverno,grpcnotrace -timeout 60m -v ./test/e2e/kyverno -kills=$$kills; \
	done

bench-admission: ## what judging costs on real API servers, into docs/performance.md: some ten minutes
	for version in 1.36.3 1.37.2; do \
	  export KVAP_KUBERNETES=$$version; \
	  go run ./test/benchadmission -update docs/performance.md; \
	  go run ./test/benchadmission -mutations -update docs/performance.md; \
	done
	$(MAKE) plot

bench-webhook: ## what the webhook costs with many clients at once, into docs/performance.md: two minutes
	go run ./test/benchwebhook -update docs/performance.md

bench-cluster: ## how the controller keeps up with a thousand policies, into docs/performance.md: two minutes
	go run ./test/benchcluster -update docs/performance.md

bench-scan: ## how the controller keeps reports of a hundred thousand objects, into docs/performance.md: twenty minutes
	go run ./test/benchscan -update docs/performance.md

lint: ## formatting, vet, static analysis and the house rules
	$(TOOL) golangci-lint run

check: lint demo test e2e conformance generated ## what CI runs, in CI's order

generate: ## rewrite what is generated from sources in this repository
	go generate ./diag/...
	go run ./schema/gendocs.go
	go tool -modfile=tools/controller-gen.mod controller-gen object crd paths=./api/... output:crd:dir=deploy/crds
	go run ./deploy/crds/genschemas.go

chart: ## render deploy/chart into the kustomize base and what its tests read; helm is built once
	./deploy/render.sh

BASE ?= gcr.io/distroless/static-debian12:nonroot

release: ## archives, SBOMs, images, krew and Homebrew manifests, chart, in dist/; BASE=none does without network
	rm -rf dist
	$(HELM) package deploy/chart --destination dist
	go run ./tools/release -out dist -base $(BASE)

image: ## build the images and push them below REGISTRY, as ghcr.io/kvap, with no Docker daemon
	rm -rf dist
	go run ./tools/release -out dist -base $(BASE) -platforms linux/amd64,linux/arm64 -push $(REGISTRY)

generated: generate chart plot ## fail if a generated file is stale
	git diff --exit-code

golden: ## rewrite the expected files from current output; then read the diff
	go test ./fixtures ./report ./vap ./cmd/kvap -update

conformance: ## judge the corpus of recorded requests, where it is at hand
	go run ./test/conformance -corpus $(CORPUS)
	go run ./test/conformance -corpus $(CORPUS) -pack match
	go run ./test/conformance -corpus $(CORPUS) -guard never
	[ ! -d $(CORPUS)/policies ] || go run ./cmd/kvap check $(CORPUS)/policies --only types --fail-on note --kubernetes-version 1.30,1.31,1.32,1.33,1.34,1.35,1.36,1.37

reach: ## what of translate and cel the policies of the corpus reach, into docs/core.md: two minutes
	go run ./tools/measure -corpus $(CORPUS) -update reach

worth: ## what each mechanism that shortens expressions is worth: half an hour
	go run ./tools/measure -corpus $(CORPUS) worth

bench: ## how fast, with how many allocations: ./fixtures has reading, translating, emitting
	go test -run '^$$' -bench . -benchmem ./...

fuzz: ## a minute for each fuzz target
	@for pkg in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
	  for target in $$(grep -h '^func Fuzz' $$pkg/*_test.go | sed 's/^func \(Fuzz[A-Za-z0-9]*\).*/\1/'); do \
	    go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg; \
	  done; \
	done

clean: ## remove what was built
	rm -rf bin dist
