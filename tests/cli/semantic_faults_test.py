#!/usr/bin/env python3
"""Faults that leave every byte whole and make another model: how many does `remesh verify` tell, and by the right id?

    semantic_faults_test.py PROGRAM SOURCE_DIR [--count N] [--jobs N] [--seed N]

The trained fixtures get N random faults, kind by kind in turn (semantic_faults.py makes them), each in a checkpoint of
its own. Each is judged as a user would who has what that kind needs:

    verify --level deep     NaN, denormal flood, lost FP8 scale, stale tied copy, all moments zeroed, master unlike weight,
                            vocabulary padded twice; an exponent bit of a weight that has a master, or of that
    verify --against CLEAN  rotary halves, QKV regrouped, gate and up, transposed, layers, stage, experts; a third of the
                            exponent bits, half of the scales. CLEAN is the same state in a mesh drawn for each
    verify --previous OLD   zeroed rows, half of the scales (of 8 and 1/8 on), some moments zeroed; a third of the exponent
                            bits: of weight and master alike, the two highest alone, since a number that became 16 times
                            as large, or half, may be training

A fault counts as told if a warning or an error has the right id and names a tensor that was changed, or the
layers and experts. 95 % must be, and of
each kind one. Then 20 clean pairs, of which nothing may be told: the same state in other meshes and formats, casts,
padding that config.json knows, consecutive steps.

CI tries 20 faults of each kind, with the sanitizers some 0.4 s of a core for each; `./dev soak` thousands. Batches in one
checkpoint would be faster, and hide what one fault alone does not show.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import semantic_faults

MESHES = {
    "llama-gqa": ("tp=2,pp=2", "tp=4,dp=2"), "llama-state": ("tp=2,pp=2", "dp=3"), "moe-state": ("ep=4,dp=4", "pp=5"),
    "llama-tied-state": ("tp=2,dp=2", "pp=7"), "fused": (), "fp8": (),
}


class Bench:
    def __init__(self, program, source, scratch):
        self.program, self.scratch = str(Path(program).resolve()), Path(scratch)
        self.world = semantic_faults.World(Path(source, "fixtures"), self.scratch)
        self.layouts = {}

    def remesh(self, *words):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise SystemExit(f"remesh {' '.join(map(str, words))}: exit {done.returncode}\n{done.stderr}")
        return done

    def convert(self, source, name, *words):
        path = self.scratch / name
        if self.remesh("convert", source, path, *words, "-q").returncode:
            raise SystemExit(f"cannot make {name}")
        return path

    def make_layouts(self):
        for name, meshes in MESHES.items():
            directory = self.world.clean[name].directory
            self.layouts[name] = [directory]
            for k, mesh in enumerate(meshes):
                zero = ("--zero", "1", "--shard-rule", "flat") if k and "state" in name else ()
                self.layouts[name].append(self.convert(directory, f"{name}.{k}", "--mesh", mesh, *zero))

    def findings(self, *words):
        return [f for f in json.loads(self.remesh("verify", *words, "-j", "1", "--json").stdout)["findings"]
                if f["severity"] != "note"]

    def judge(self, fault, directory, random):
        if fault.how == "deep":
            return self.findings(directory, "--level", "deep")
        name = fault.state.name
        if fault.how == "previous":
            return self.findings(directory, "--previous", self.world.clean[self.world.earlier[name]].directory)
        return self.findings(directory, "--against", semantic_faults.pick(random, self.layouts[name]))


def is_right(finding, fault):
    if finding["tensor"] is None:
        return finding["id"] in fault.ids and fault.says != "" and fault.says in finding["message"]
    return finding["id"] in fault.ids and finding["tensor"] in fault.tensors


def try_fault(bench, seed, number, kind):
    """Returns the kind, and what is to be said if it was not told."""
    random = np.random.default_rng([seed, number])
    fault = semantic_faults.KINDS[kind](bench.world, random)
    directory = bench.scratch / f"fault{number}"
    semantic_faults.write(fault, directory)
    findings = bench.judge(fault, directory, random)
    shutil.rmtree(directory)
    if any(is_right(f, fault) for f in findings):
        return kind, None
    told = Counter((f["id"], f["tensor"]) for f in findings).most_common(3)
    return kind, f"{kind}, fault {number}: {fault.what}, {fault.how}: {told or 'nothing'}"


def inject(bench, arguments):
    kinds = list(semantic_faults.KINDS)
    tasks = [(number, kinds[number % len(kinds)]) for number in range(arguments.count)]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(lambda task: try_fault(bench, arguments.seed, *task), tasks))
    tried = Counter(kind for kind, _ in results)
    missed = Counter(kind for kind, words in results if words)
    for kind in kinds[:arguments.count]:
        print(f"  {tried[kind] - missed[kind]:4} of {tried[kind]:4}  {kind}")
    for _, words in results:
        if words:
            print(f"  missed: {words}")
    told = arguments.count - missed.total()
    print(f"{told} of {arguments.count} faults are told ({told / arguments.count:.1%}), seed {arguments.seed}")
    return told >= 0.95 * arguments.count and all(tried[kind] > missed[kind] for kind in tried)


def padded(bench):
    """More rows than tokens, as config.json says."""
    state = bench.world.copy("llama-gqa")
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        values = state[name]
        state[name] = np.concatenate([values, np.zeros((5, values.shape[1]), np.float32)])
    fault = semantic_faults.Fault(state, "deep", set(), set(), "", config={"vocab_size": 520})
    semantic_faults.write(fault, bench.scratch / "padded")
    return bench.scratch / "padded"


def clean_pairs(bench):
    world, layouts = bench.world, bench.layouts
    for name in ("llama-gqa", "llama-state", "moe-state", "llama-tied-state"):
        hf, first, second = layouts[name]
        yield f"{name}: hf and a mesh", first, "--against", hf
        yield f"{name}: two meshes", second, "--against", first
    yield "hf again from a mesh", bench.convert(layouts["moe-state"][1], "again", "--to", "hf"), "--against", \
        layouts["moe-state"][2]
    for key, state in world.later.items():
        yield f"{key}: consecutive steps", state.directory, "--previous", layouts[world.earlier[key]][1]
    yield "wider", bench.convert(layouts["llama-gqa"][0], "f32", "--dtype", "f32", "--mesh", "tp=2"), "--level", "deep"
    yield "narrower", bench.convert(layouts["llama-gqa"][0], "f16", "--dtype", "f16", "--to", "hf"), "--level", "deep"
    yield "wider and back", bench.convert(bench.scratch / "f32", "bf16", "--dtype", "bf16", "--mesh", "pp=2"), \
        "--against", layouts["llama-gqa"][0]
    yield "fused", world.clean["fused"].directory, "--level", "deep"
    yield "padded as config.json says", padded(bench), "--level", "deep"


def are_clean(bench):
    alarms = count = 0
    for name, *words in clean_pairs(bench):
        count += 1
        if words[1] != "--level":
            words += ["--level", "deep"]
        for finding in bench.findings(*words):
            alarms += 1
            print(f"  false alarm: {name}: {finding['id']} {finding['tensor']}: {finding['message']}")
    print(f"{alarms} false alarms on {count} clean pairs")
    return alarms == 0 and count == 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("source")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seed", type=int, default=20260801)
    arguments = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="remesh-semantic-") as scratch:
        bench = Bench(arguments.program, arguments.source, scratch)
        bench.make_layouts()
        told = inject(bench, arguments)
        clean = are_clean(bench)
    print(f"{time.monotonic() - started:.0f} s with {arguments.jobs} at a time")
    return 0 if told and clean else 1


if __name__ == "__main__":
    sys.exit(main())
