#!/usr/bin/env python3
"""What `plan` says of memory is more than a job takes, and not much more: at most a fifth, or 32 MiB.
And no job takes more than its --memory: one that would is refused, with the least that would do.

    peak_memory_test.py PROGRAM

Sanitizers take memory of their own, so this runs on the release build.
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

MIB = 2**20
UNITS = {"B": 1, "KiB": 2**10, "MiB": MIB, "GiB": 2**30}


def make_model(directory, tensors, rows, columns):
    directory.mkdir()
    size = 2 * rows * columns
    header = {f"model.layers.{i // 100:03}.block.{i % 100:02}.weight":
              {"dtype": "BF16", "shape": [rows, columns], "data_offsets": [i * size, (i + 1) * size]}
              for i in range(tensors)}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(directory / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + tensors * size)


def size(text):
    number, unit = re.fullmatch(r"([0-9.]+) ?(\w+)", text).groups()
    return float(number) * UNITS[unit]


def predicted(program, *arguments):
    """Bytes, or (0, what to say instead) where the memory is too little."""
    done = subprocess.run([program, "plan", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode == 9:
        return 0, re.search(r"RM705.*`--memory (\w+)`", done.stderr).group(1)
    return size(re.search(r"peak memory +at most ([0-9.]+ \w+)", done.stdout).group(1)), None


def without_memory(options):
    return options[:options.index("--memory")] if "--memory" in options else options


def taken(program, *arguments):
    process = subprocess.Popen([program, *map(str, arguments), "-q"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"failed: {arguments}")
    return usage.ru_maxrss * 1024


def main(program):
    program = str(Path(program).resolve())
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="remesh-peak-", dir="/dev/shm") as scratch:
        home = Path(scratch)
        for name, tensors, rows, columns in (("few", 4, 4096, 8192), ("some", 2000, 64, 64), ("many", 20_000, 2, 2)):
            make_model(home / name, tensors, rows, columns)
            jobs = [("convert", home / name, home / f"{name}-1", []),
                    ("reshard", home / f"{name}-1", home / f"{name}-2", ["--mesh", "dp=2"]),
                    ("convert", home / f"{name}-2", home / f"{name}-3", ["--to", "hf"]),
                    ("reshard", home / f"{name}-1", home / f"{name}-4", ["--mesh", "dp=2", "--memory", "64MiB"]),
                    ("convert", home / f"{name}-1", home / f"{name}-5", ["--to", "hf", "--dtype", "f32", "-j", "3"])]
            for verb, source, target, options in jobs:
                bound, least = predicted(program, source, *options)
                if least:
                    less = f"{int(least.removesuffix('MiB')) - 1}MiB"
                    wrong += predicted(program, source, *without_memory(options), "--memory", less)[1] != least
                    options = [*without_memory(options), "--memory", least]
                    bound, _ = predicted(program, source, *options)
                memory = size(options[options.index("--memory") + 1] if "--memory" in options else "1GiB")
                peak = taken(program, verb, source, target, *options)
                fits = peak <= bound <= max(1.2 * peak, peak + 32 * MIB) and peak <= memory
                wrong += not fits
                print(f"{'ok' if fits else 'WRONG':6} {name:5} {verb} {' '.join(options):42} "
                      f"takes {peak / MIB:6.1f} MiB, at most {bound / MIB:6.1f} MiB were predicted")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
