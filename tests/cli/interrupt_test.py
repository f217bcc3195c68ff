#!/usr/bin/env python3
"""A signal in the middle of a job: it stops cleanly, says so by its exit code, and leaves nothing.

    interrupt_test.py PROGRAM
"""

import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TENSORS = 16


def make_model(directory, mebibytes):
    """A Hugging Face directory of that size, of sparse zeros: no tensor is worth reading."""
    directory.mkdir()
    each = mebibytes * 2**20 // TENSORS
    header = {f"t{i:02}": {"dtype": "U8", "shape": [each], "data_offsets": [i * each, (i + 1) * each]}
              for i in range(TENSORS)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(directory / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + TENSORS * each)


def interrupted(program, number, scratch, mebibytes):
    """Exit code and what is left in the destination's directory; None if the job was faster."""
    parent = scratch / f"{number.name}-{mebibytes}"
    parent.mkdir()
    job = subprocess.Popen([program, "convert", scratch / f"hf{mebibytes}", parent / "out", "-j1",
                            "--memory", "64MiB"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while job.poll() is None and not list(parent.glob(".out.remesh-*/*")):
        time.sleep(0.001)
    time.sleep(0.02)
    job.send_signal(number)
    job.communicate(timeout=60)
    if job.returncode == 0:
        return None
    return job.returncode, sorted(os.listdir(parent))


def check(program, number, scratch):
    for mebibytes in (256, 512, 1024):
        if not (scratch / f"hf{mebibytes}").exists():
            make_model(scratch / f"hf{mebibytes}", mebibytes)
        got = interrupted(program, number, scratch, mebibytes)
        if got is not None:
            break
    expected = (128 + number, [])
    if got != expected:
        print(f"FAILED   {number.name}: exit code and leftovers are {got}, expected {expected}")
    return got == expected


def main(program):
    program = str(Path(program).resolve())
    with tempfile.TemporaryDirectory(prefix="remesh-interrupt-") as scratch:
        passed = [check(program, number, Path(scratch)) for number in (signal.SIGINT, signal.SIGTERM)]
    print(f"{sum(passed)} of {len(passed)} signals stop the job cleanly")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
