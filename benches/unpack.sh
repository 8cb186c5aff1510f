#!/bin/sh
# Unpacking and checking the five CUDA wheels against `uv pip install` of the same files, in pairs.
# usage: benches/unpack.sh WHEELHOUSE UV [PAIRS]
#   WHEELHOUSE  a folder with the wheels of toolchain.lock, such as target/test-wheelhouse/wheels
#   UV          the uv program: python3 -m venv V && V/bin/pip install uv
# hyperfine comes from Debian (apt-get install hyperfine) or crates.io (cargo install hyperfine).
# Both start cold: no target, an empty uv cache; the wheels are in the page cache. Every pair has folders of its own, in
# BENCH_DIR (or target/), and nothing is removed before the end: ext4 searches long for an inode after a removal.
set -eu
wheelhouse=$(realpath "$1") uv=$(realpath -s "$2") pairs=${3:-15}
cd "$(dirname "$0")/.."
cargo build --quiet --package xtask --example unpack
work=$(mktemp -d "${BENCH_DIR:-target}/bench-unpack.XXXXXX")
trap 'rm -rf "$work"' EXIT
work=$(realpath "$work")
names="nvidia-cuda-cccl nvidia-cuda-crt nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-nvvm"
cat "$wheelhouse"/nvidia*.whl >/dev/null
pair=0
while [ "$pair" -lt "$pairs" ]; do
    here=$work/$pair
    mkdir "$here"
    ours="target/debug/examples/unpack toolchain.lock $wheelhouse $here/ours $names"
    theirs="env UV_CACHE_DIR=$here/cache $uv pip install --quiet --offline --no-deps --target $here/theirs $(echo "$wheelhouse"/nvidia*.whl)"
    # Either side goes first in every other pair.
    [ $((pair % 2)) -eq 0 ] && set -- "$ours" "$theirs" || set -- "$theirs" "$ours"
    hyperfine --style none --shell none --runs 1 --export-json "$here.json" "$@"
    pair=$((pair + 1))
done
python3 - "$work" <<'PYTHON'
import json, pathlib, statistics, sys
runs = [json.loads(path.read_text())["results"] for path in pathlib.Path(sys.argv[1]).glob("*.json")]
pairs = [sorted(pair, key=lambda run: run["command"].startswith("env ")) for pair in runs]
cpu = lambda run: run["user"] + run["system"]
def show(label, values):
    print(f"{label}: median {statistics.median(values):.3f}, least {min(values):.3f}, most {max(values):.3f}")
show("ours, s", [ours["mean"] for ours, _ in pairs])
show("uv, s", [theirs["mean"] for _, theirs in pairs])
show("ratio of a pair", [ours["mean"] / theirs["mean"] for ours, theirs in pairs])
show("ours, CPU s", [cpu(ours) for ours, _ in pairs])
show("uv, CPU s", [cpu(theirs) for _, theirs in pairs])
show("ratio of CPU time of a pair", [cpu(ours) / cpu(theirs) for ours, theirs in pairs])
PYTHON
