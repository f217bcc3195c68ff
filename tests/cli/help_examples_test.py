#!/usr/bin/env python3
"""Runs every example of every --help: what users copy must work.

    help_examples_test.py PROGRAM FIXTURES

Placeholders: CKPT a native checkpoint, HF_DIR the same as a Hugging Face directory, OTHER another
native checkpoint of it, OUT a path where nothing lies, LOCK a lock file, RUN a directory of checkpoints,
KEY a pair of keys, with which CKPT is signed.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

VERBS = ["inspect", "plan", "reshard", "convert", "verify", "latest", "diff", "fingerprint", "seal", "repair",
         "bench", "explain", "env", "completion"]


def examples_of(program, verb):
    text = subprocess.run([program, *verb, "--help"], check=True, capture_output=True,
                          text=True).stdout
    listed = text.partition("Examples:")[2]
    return [line.strip() for line in listed.splitlines() if line.strip()]


def make_inputs(program, fixtures, scratch):
    places = {"CKPT": scratch / "ckpt", "OTHER": scratch / "other", "LOCK": scratch / "lock", "KEY": scratch / "key",
              "HF_DIR": scratch / "hf"}
    shutil.copytree(Path(fixtures, "llama-gqa"), places["HF_DIR"])
    subprocess.run(["minisign", "-G", "-W", "-s", places["KEY"], "-p", f"{places['KEY']}.pub"],
                   check=True, stdout=subprocess.DEVNULL)
    for name, mesh in (("CKPT", "tp=2,pp=2"), ("OTHER", "tp=4")):
        subprocess.run([program, "convert", places["HF_DIR"], places[name], "--mesh", mesh, "--sign", places["KEY"], "-q"],
                       check=True, stdout=subprocess.DEVNULL)
    subprocess.run([program, "fingerprint", places["CKPT"], "-o", places["LOCK"], "-q"],
                   check=True, stdout=subprocess.DEVNULL)
    places["RUN"] = scratch / "run"
    shutil.copytree(places["CKPT"], places["RUN"] / "step-10")
    return places


def run(program, example, places, scratch, number):
    command = re.sub(r"(^|\$\()remesh\b", lambda found: found[1] + program, example)
    for name, path in {**places, "OUT": scratch / f"out{number}"}.items():
        command = re.sub(rf"\b{name}\b", str(path), command)
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"FAILED   {example}: exit {done.returncode}\n{done.stderr}")
    return done.returncode == 0


def main(program, fixtures):
    program = str(Path(program).resolve())
    passed = total = 0
    with tempfile.TemporaryDirectory(prefix="remesh-help-") as scratch:
        scratch = Path(scratch)
        places = make_inputs(program, fixtures, scratch)
        for verb in [[]] + [[verb] for verb in VERBS]:
            examples = examples_of(program, verb)
            if not 2 <= len(examples) <= 3:
                print(f"FAILED   remesh {' '.join(verb)} --help has {len(examples)} examples")
                return 1
            for example in examples:
                total += 1
                passed += run(program, example, places, scratch, total)
    print(f"{passed} of {total} examples ran")
    return 0 if passed == total else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
