#!/usr/bin/env bash
# Lints, renders and validates the Helm chart, with its defaults and with each of its example values. Called by
# `make check`.
set -euo pipefail
cd "$(dirname "$0")/.."

chart=deploy/helm/penstock
kubernetes=1.37.0
out=target/chart
rm -rf "$out"
mkdir -p "$out"
export HELM_CACHE_HOME="$PWD/$out/helm/cache" HELM_CONFIG_HOME="$PWD/$out/helm/config" HELM_DATA_HOME="$PWD/$out/helm/data"

# Helm says at every step that the dashboard and the alerts are links to where they live.
quiet_helm() {
    helm "$@" 2> >(grep -v "found symbolic link in path" >&2)
}

template() {
    quiet_helm template gateway "$chart" --namespace ai --kube-version "$kubernetes" "$@"
}

render() { # NAME FLAG...
    local name=$1 file=$out/$1.yaml
    shift
    quiet_helm lint --quiet --strict --kube-version "$kubernetes" "$@" "$chart"
    template "$@" >"$file"
    template "$@" | cmp - "$file" # rendering the same values gives the same bytes
    .tools/venv/bin/python tools/manifests.py "$file"
    kubernetes-validate --strict -k "$kubernetes" "$file" >"$out/$name.log" 2>&1 || {
        cat "$out/$name.log" >&2
        return 1
    }
    # Custom resources have no schema here; anything else without one is a mistake.
    if grep "Couldn't find schema" "$out/$name.log" | grep -v "monitoring.coreos.com/v1" >&2; then
        return 1
    fi
    echo "$name: $(grep -c '^kind:' "$file") resources"
}

refused() { # WHAT FLAG...
    local what=$1
    shift
    if template "$@" >/dev/null 2>&1; then
        echo "the chart takes $what" >&2
        return 1
    fi
}

render default
for values in "$chart"/ci/*-values.yaml; do
    render "$(basename "$values" -values.yaml)" --values "$values"
done

refused "a value it does not know" --set proxy.replica=3
refused "a store without an address" --set etcd.enabled=false
refused "a drain time that is not a number" --set proxy.shutdown.drainSeconds=2m
refused "an even number of etcd members" --set etcd.members=2
