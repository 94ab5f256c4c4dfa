#!/usr/bin/env bash
# Renders the chart: with its own values into the kustomize base, and with all that
# can be switched on into deploy/chart/testdata. `make chart` runs it.
set -euo pipefail
cd "$(dirname "$0")/.."
export HELM_CACHE_HOME HELM_CONFIG_HOME HELM_DATA_HOME
HELM_CACHE_HOME=$(mktemp -d)
HELM_CONFIG_HOME=$HELM_CACHE_HOME HELM_DATA_HOME=$HELM_CACHE_HOME
trap 'rm -rf "$HELM_CACHE_HOME"' EXIT
helm() { go tool -modfile=tools/helm.mod helm "$@"; }

# Helm follows links with a warning on each, so the chart has copies.
rm -rf deploy/chart/files/crds
mkdir -p deploy/chart/files/crds
cp deploy/crds/kvap.dev_*.yaml deploy/chart/files/crds

helm lint --strict --quiet deploy/chart
helm lint --strict --quiet deploy/chart -f deploy/chart/testdata/full-values.yaml
helm lint --strict --quiet deploy/chart -f deploy/chart/testdata/webhook-values.yaml
# Kustomize and the tests have the definitions from deploy/crds, and run no test of Helm's.
render() { helm template kvap deploy/chart --namespace kvap-system --kube-version 1.36.0 --set crds.enabled=false --skip-tests "$@"; }

{
  echo "# Made from deploy/chart by make chart."
  render | grep -vE '^ +(helm.sh/chart|app.kubernetes.io/managed-by):|^# Source:'
} > deploy/kustomize/base/kvap.yaml
{
  echo "# Made from deploy/chart by make chart."
  render --set webhook.enabled=true | grep -vE '^ +(helm.sh/chart|app.kubernetes.io/managed-by):|^# Source:'
} > deploy/kustomize/webhook/kvap.yaml
helm template kvap deploy/chart --namespace kvap-system --kube-version 1.36.0 --set crds.enabled=false -f deploy/chart/testdata/full-values.yaml > deploy/chart/testdata/full.yaml
helm template hooked deploy/chart --namespace kvap-hooked --kube-version 1.36.0 --set crds.enabled=false --skip-tests \
  -f deploy/chart/testdata/webhook-values.yaml > deploy/chart/testdata/webhook.yaml

# The names of the definitions, and whether they stay, by the values crds.policies and crds.keep.
for values in policies=true,keep=true policies=false,keep=true policies=true,keep=false; do
  render --set crds.enabled=true --set "crds.${values/,/,crds.}" --show-only templates/crds.yaml |
    awk -v values="$values" '/^kind:/ {keep = "goes"} /helm.sh\/resource-policy: keep/ {keep = "stays"} /^  name:/ {name = $2} /^spec:/ {print values, name, keep}'
done > deploy/chart/testdata/definitions.txt
