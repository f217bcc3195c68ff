#!/usr/bin/env python3
"""A job that was killed, and --resume.

    resume_test.py PROGRAM ROOT

Kills jobs before a write that comes after 10, 50, 90 and 97 % of all bytes, lets `--resume` complete them, and asks for
the bytes of a job that was not killed, and for few bytes written again: at most 15 % of all after 90 %. Then asks for
what --resume must refuse: another source, other options, another version. Needs a C compiler (faults.c is preloaded).
"""

import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from faults_job import Case, Sandbox, build_library, contents

KILLED, DONE, REFUSED, EXISTS = -9, 0, 11, 10
failures = []


def make_large(directory):
    """Few tensors of many chunks: in a checkpoint of some size, payload is what is written."""
    directory.mkdir()
    header, end = {}, 0
    draw = random.Random(1)
    payload = bytearray()
    for number in range(3):
        rows = b"".join(draw.randbytes(1) + bytes([draw.choice((60, 61, 188, 189))]) for _ in range(1 << 20))
        header[f"w{number}"] = {"dtype": "BF16", "shape": [1024, 1024], "data_offsets": [end, end + len(rows)]}
        end += len(rows)
        payload += rows
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    (directory / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + payload)


def expect(condition, complaint):
    if not condition:
        failures.append(complaint)
        print(f"BAD  {complaint}")


def written(calls):
    """Bytes of all writes."""
    return sum(call.size for call in calls if call.name in ("write", "pwrite64"))


def write_after(calls, share):
    """The first write before which that share of all bytes is written."""
    total, sum_before = written(calls), 0
    for call in calls:
        if call.name not in ("write", "pwrite64"):
            continue
        if sum_before >= share * total:
            return call.at
        sum_before += call.size
    return None


def check_shares(case):
    for share in (0.1, 0.5, 0.9, 0.97):
        with Sandbox(case, f"at-{share}") as box:
            at = write_after(case.calls, share)
            if at is None:
                continue
            expect(box.run(fault=(at, "before", 0)).code == KILLED, f"{case.name} {share}: was not killed")
            expect(not box.out.exists(), f"{case.name} {share}: there is a destination")
            run = box.run("--resume")
            expect(run.code == DONE, f"{case.name} {share}: --resume ends with {run.code}: {run.errors}")
            expect(box.out.exists() and contents(box.out) == case.whole, f"{case.name} {share}: other bytes")
            expect(os.listdir(box.home) == ["out"], f"{case.name} {share}: something stays behind")
            again = written(run.calls) / written(case.calls)
            print(f"{case.name}: killed after {share:.0%} of {written(case.calls)} bytes, {again:.1%} written again")
            if share >= 0.9:
                expect(again <= 0.15, f"{case.name} {share}: {again:.1%} are written again")


def check_refusals(case):
    at = write_after(case.calls, 0.5)
    with Sandbox(case, "refusals") as box:
        box.run(fault=(at, "before", 0))
        (left,) = os.listdir(box.home)
        before = contents(box.home)

        run = box.run()
        expect(run.code == EXISTS and "--resume" in run.errors, f"a leftover is not named: {run.code} {run.errors}")

        other = subprocess.run([case.program, case.verb, case.source, box.out, "--mesh", "tp=4", "--resume", "-q"],
                               capture_output=True, text=True)
        expect(other.returncode == REFUSED and left in other.stderr, f"other options: {other.returncode} {other.stderr}")

        job = box.home / left / "job"
        text = job.read_text()
        job.write_text(text.replace("remesh 0.", "remesh 9.", 1))
        run = box.run("--resume")
        expect(run.code == REFUSED and "remesh 9." in run.errors, f"another version: {run.code} {run.errors}")
        job.write_text(text)

        file = next(path for path in sorted(case.source.rglob("*")) if path.suffix in (".h5", ".safetensors"))
        status = file.stat()
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000_000))
        run = box.run("--resume")
        expect(run.code == REFUSED and file.name in run.errors, f"a source that changed: {run.code} {run.errors}")
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

        expect(contents(box.home) == before, "a refusal changed what was left")
        run = box.run("--resume")
        expect(run.code == DONE and contents(box.out) == case.whole, f"after all that: {run.code} {run.errors}")


def check_damage(case):
    """What is on the medium counts, not what was written: a leftover that changed is mended, not believed."""
    with Sandbox(case, "damage") as box:
        box.run(fault=(write_after(case.calls, 0.9), "before", 0))
        (left,) = os.listdir(box.home)
        largest = max((path for path in (box.home / left).iterdir() if path.is_file()), key=lambda path: path.stat().st_size)
        content = bytearray(largest.read_bytes())
        # Payload, that is: what nobody writes, such as the gaps between frames, is what the file system made of it.
        at = next(at for at in range(len(content) // 2, len(content)) if 0 not in content[at:at + 32])
        content[at:at + 32] = bytes(32)
        largest.write_bytes(content)
        run = box.run("--resume")
        expect(run.code == DONE and contents(box.out) == case.whole, f"{case.name}, changed: {run.code} {run.errors}")


def main():
    program, root = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory(prefix="remesh-resume-") as directory:
        scratch = Path(directory)
        build_library(Path(__file__).with_name("faults.c"), scratch)
        hf, native, large = scratch / "hf", scratch / "ck", scratch / "large"
        make_large(large)
        shutil.copytree(root / "fixtures" / "llama-state", hf)
        subprocess.run([program, "convert", hf, native, "--mesh", "tp=2,dp=2", "-q"], check=True, stdout=subprocess.DEVNULL)
        cases = [Case(program, scratch, *job) for job in (
            ("convert", "convert", hf, ["--mesh", "tp=2,pp=2"]),
            ("packed", "convert", large, ["--mesh", "dp=2", "--compress", "zstd"]),
            ("reshard", "reshard", native, ["--mesh", "pp=3,dp=2", "--zero", "1"]),
            ("to-hf", "convert", native, ["--to", "hf"]))]
        for case in cases:
            case.learn()
            check_shares(case)
            check_damage(case)
        check_refusals(cases[0])
        check_refusals(cases[2])
    print(f"resume: {len(cases)} jobs, {len(failures)} bad")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
