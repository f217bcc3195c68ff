#!/usr/bin/env python3
"""The power fails at random: a reshard is killed many times, at times drawn between its start and its end. Each time
either nothing is visible, or the whole checkpoint is; and the source never changes.

    kill_test.py PROGRAM FIXTURES [COUNT [SEED]]
"""

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def contents(directory):
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(directory.rglob("*")) if path.is_file()}


def killed_after(command, seconds):
    """Whether the job was still running."""
    job = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        job.wait(timeout=seconds)
        return False
    except subprocess.TimeoutExpired:
        job.send_signal(signal.SIGKILL)
        job.wait()
        return True


def main(program, fixtures, count="200", seed="11"):
    program = str(Path(program).resolve())
    draw = random.Random(int(seed))
    killed = done = visible = left = 0
    with tempfile.TemporaryDirectory(prefix="remesh-kill-") as scratch:
        source, home = Path(scratch) / "source", Path(scratch) / "home"
        subprocess.run([program, "convert", Path(fixtures) / "llama-state", source, "--mesh", "tp=2,pp=2", "-q"],
                       check=True, stdout=subprocess.DEVNULL)
        before = contents(source)
        command = [program, "reshard", source, home / "out", "--mesh", "tp=4,dp=2", "--discard", "-q"]
        home.mkdir()
        begin = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        duration = time.monotonic() - begin
        whole = contents(home / "out")
        shutil.rmtree(home / "out")

        while killed < int(count):
            number = killed + done
            if number > 5 * int(count):
                sys.exit(f"only {killed} of {number} jobs could be killed")
            was_killed = killed_after(command, draw.uniform(0, duration))
            killed += was_killed
            done += not was_killed
            duration *= 1.02 if was_killed else 0.97  # how long a job takes just now
            names = sorted(os.listdir(home))
            left += any(name.startswith(".out.remesh-") for name in names)
            strangers = [name for name in names if name != "out" and not name.startswith(".out.remesh-")]
            if strangers or (not was_killed and names != ["out"]):
                sys.exit(f"kill {number} (seed {seed}): there is {names}")
            if "out" in names:
                visible += 1
                if contents(home / "out") != whole:
                    sys.exit(f"kill {number} (seed {seed}): what is visible is not whole")
                shutil.rmtree(home / "out")
            if contents(source) != before:
                sys.exit(f"kill {number} (seed {seed}): the source changed")
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        if contents(home / "out") != whole or os.listdir(home) != ["out"]:
            sys.exit("after all that, the job does not do what it did")
    print(f"seed {seed}: {killed} jobs were killed, {left} left a hidden directory, {visible} of {killed + done} had "
          "published; nothing half done was visible, the source never changed")


if __name__ == "__main__":
    main(*sys.argv[1:])
