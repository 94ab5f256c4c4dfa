#!/usr/bin/env bash
# Renders the chart: with its own values into the kustomize base, and with all that
# can be switched on into deploy/chart/testdata. `make chart` runs it.
set -euo pipefail
cd "$(dirname "$0")/.."
export HELM_CACHE_HOME HELM_CONFIG_HOME HELM_DATA_HOME
HELM_CACHE_HOME=$(mktemp -d)
HELM_CONFIG_HOME=$HELM_CACHE_HOME HELM_DATA_HOME=$HELM_CACHE_HOME
trap 'rm -rf "$HELM_CACHE_HOME"' EXIT
helm() { go tool -modfile=tools/helm.mod helm "$@" 2> >(grep -v 'found symbolic link' >&2); }

helm lint --strict --quiet deploy/chart
helm lint --strict --quiet deploy/chart -f deploy/chart/testdata/full-values.yaml
helm lint --strict --quiet deploy/chart -f deploy/chart/testdata/webhook-values.yaml
render() { helm template kvap deploy/chart --namespace kvap-system --kube-version 1.36.0 "$@"; }

{
  echo "# Made from deploy/chart by make chart."
  render | grep -vE '^ +(helm.sh/chart|app.kubernetes.io/managed-by):|^# Source:'
} > deploy/kustomize/base/kvap.yaml
{
  echo "# Made from deploy/chart by make chart."
  render --set webhook.enabled=true | grep -vE '^ +(helm.sh/chart|app.kubernetes.io/managed-by):|^# Source:'
} > deploy/kustomize/webhook/kvap.yaml
render -f deploy/chart/testdata/full-values.yaml > deploy/chart/testdata/full.yaml
helm template hooked deploy/chart --namespace kvap-hooked --kube-version 1.36.0 -f deploy/chart/testdata/webhook-values.yaml > deploy/chart/testdata/webhook.yaml

# The names of the definitions that a first install makes, by the value crds.policies.
for policies in true false; do
  render --include-crds --set crds.policies=$policies |
    sed -nE "/^kind: CustomResourceDefinition/,/^spec:/s/^  name: /$policies /p"
done > deploy/chart/testdata/definitions.txt
