#!/usr/bin/env python3
"""What happens to a job in the middle: a signal, a rival, a kill, a full disk. Each time the exit code
and what is left beside the destination.

    interrupt_test.py PROGRAM

A disk is filled on a small file system in memory; where none can be mounted, that check says so and
the whole returns 77, if all else passed.
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
SIZES_MIB = (256, 512, 1024)  # the next where a job was done before it could be caught
SKIPPED = 77


class TooFast(Exception):
    """The job was done before it could be caught."""


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


class Job:
    """A conversion of `hf` to `parent`/out that is stopped in the middle of its writing."""

    def __init__(self, program, hf, parent, nohup=False, options=()):
        self.parent = parent
        self.command = [program, "convert", hf, parent / "out", "-j1", "--memory", "64MiB", *options]
        nohup = ["nohup"] if nohup else []
        self.process = subprocess.Popen([*nohup, *self.command], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        while self.process.poll() is None and not list(parent.glob(".out.remesh-*/*")):
            time.sleep(0.001)
        time.sleep(0.02)
        self.process.send_signal(signal.SIGSTOP)
        if self.process.poll() is not None or (parent / "out").exists():
            self.end(signal.SIGKILL)
            raise TooFast

    def end(self, number=None):
        """Sends that signal, if any, and lets the job go on to its end."""
        if number is not None:
            self.process.send_signal(number)
        self.process.send_signal(signal.SIGCONT)
        self.errors = self.process.communicate(timeout=60)[1]
        if self.process.returncode == 0:
            raise TooFast
        return self.process.returncode

    def left(self):
        return sorted(os.listdir(self.parent))

    def again(self, *options):
        """The same job anew: its exit code, and what it says."""
        done = subprocess.run([*self.command, *options], capture_output=True, text=True)
        return done.returncode, done.stderr


def expect(got, expected):
    if got != expected:
        raise AssertionError(f"got {got}, expected {expected}")


def expect_words(text, *words):
    for word in words:
        if word not in text:
            raise AssertionError(f"'{word}' is not in: {text}")


def check_interrupt(job):
    expect((job.end(signal.SIGINT), job.left()), (128 + signal.SIGINT, []))
    expect_words(job.errors, "nothing was left behind", "--resume")


def check_stop_of_resumable(job):
    """What a job keeps is told in one line: where it is, how much, and what can be done about it."""
    expect(job.end(signal.SIGINT), 128 + signal.SIGINT)
    (left,) = job.left()
    (note,) = [line for line in job.errors.splitlines() if line.startswith("remesh: note:")]
    expect_words(note, f"'{job.parent / left}' keeps what was done so far (", " MiB)", "--resume",
                 "--discard")
    expect((job.again()[0], job.left()), (0, ["out"]))


def check_termination(job):
    expect((job.end(signal.SIGTERM), job.left()), (128 + signal.SIGTERM, []))


def check_hangup(job):
    expect((job.end(signal.SIGHUP), job.left()), (128 + signal.SIGHUP, []))


def check_nohup(job):
    """What was ignored when the job began stays ignored."""
    job.process.send_signal(signal.SIGHUP)
    job.process.send_signal(signal.SIGCONT)
    job.process.communicate(timeout=60)
    expect((job.process.returncode, job.left()), (0, ["out"]))


def check_rival(job):
    """A job that lives holds its directory, whatever the other one asks for."""
    mine = job.left()
    for options in ([], ["--discard"]):
        code, says = job.again(*options)
        expect((code, job.left()), (10, mine))
        expect_words(says, "RM701", "another job holds it")
    expect(job.end(signal.SIGTERM), 128 + signal.SIGTERM)


def check_kill(job):
    """What a killed job left is named, kept, and removed on request."""
    expect(job.end(signal.SIGKILL), -signal.SIGKILL)
    (left,) = job.left()
    code, says = job.again()
    expect((code, job.left()), (10, [left]))
    expect_words(says, left, "--discard")
    code, says = job.again("--discard")
    expect((code, job.left()), (0, ["out"]))


def set_last_byte(path, byte):
    with open(path, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(byte)


def check_changed_source(job):
    """Somebody writes to the source while it is read: nobody can say what was read."""
    source = Path(job.command[2]) / "model.safetensors"
    set_last_byte(source, b"\1")
    try:
        expect((job.end(), job.left()), (11, []))
        expect_words(job.errors, "the source changed while it was read", "model.safetensors")
    finally:
        set_last_byte(source, b"\0")


def check_changed_while_sealed(job):
    """The same of a seal, which would be of bytes that never were there together."""
    expect(job.end(signal.SIGTERM), 128 + signal.SIGTERM)
    program, _, directory = job.command[:3]
    seal = subprocess.Popen([program, "seal", directory, "-o", job.parent / "seal",
                             "--read-limit", "64MiB"], stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    set_last_byte(Path(directory) / "model.safetensors", b"\1")
    try:
        errors = seal.communicate(timeout=60)[1]
        expect((seal.returncode, job.left()), (11, []))
        expect_words(errors, "the source changed while it was read, so no seal was written")
    finally:
        set_last_byte(Path(directory) / "model.safetensors", b"\0")


def check_full_disk(job):
    """The room was there when the job began; others took it."""
    filler = job.parent.parent / "filler"
    with open(filler, "wb", buffering=0) as file:
        try:
            while file.write(bytes(2**20)):
                pass
        except OSError:
            pass
    expect((job.end(), job.left()), (7, []))
    expect_words(job.errors, "RM702", "No space left on device")


def run_check(check, program, scratch, home, options_of_size):
    for mebibytes in SIZES_MIB:
        hf = scratch / f"hf{mebibytes}"
        if not hf.exists():
            make_model(hf, mebibytes)
        with options_of_size(home, mebibytes) as parent:
            try:
                job = Job(program, hf, parent, nohup=check is check_nohup,
                          options=["--resume"] if check is check_stop_of_resumable else [])
                check(job)
                return
            except TooFast:
                continue
            finally:
                if "job" in locals() and job.process.poll() is None:
                    job.process.kill()
    raise AssertionError("every job was done before it could be caught")


class OnDisk:
    """An empty directory."""

    def __init__(self, home, mebibytes):
        self.parent = home / f"parent{mebibytes}"

    def __enter__(self):
        self.parent.mkdir(parents=True)
        return self.parent

    def __exit__(self, *_):
        pass


class InMemory(OnDisk):
    """The same on a file system in memory that has room for one checkpoint, not for more."""

    def __init__(self, home, mebibytes):
        self.mount = home / f"mount{mebibytes}"
        self.mebibytes = mebibytes
        super().__init__(self.mount, mebibytes)

    def __enter__(self):
        self.mount.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.mebibytes + 16}m", "remesh-test",
                        self.mount], check=True, capture_output=True)
        return super().__enter__()

    def __exit__(self, *_):
        subprocess.run(["umount", self.mount], check=True)


def main(program):
    program = str(Path(program).resolve())
    checks = [(check_interrupt, OnDisk), (check_termination, OnDisk), (check_hangup, OnDisk), (check_stop_of_resumable, OnDisk),
              (check_nohup, OnDisk), (check_rival, OnDisk),
              (check_kill, OnDisk), (check_changed_source, OnDisk),
              (check_changed_while_sealed, OnDisk), (check_full_disk, InMemory)]
    passed, skipped = 0, 0
    with tempfile.TemporaryDirectory(prefix="remesh-interrupt-") as scratch:
        for check, place in checks:
            try:
                run_check(check, program, Path(scratch), Path(scratch) / check.__name__, place)
                passed += 1
            except (subprocess.CalledProcessError, FileNotFoundError) as error:
                if place is not InMemory:
                    raise
                skipped += 1
                print(f"skipped  {check.__name__}: no file system can be mounted here: {error}")
            except AssertionError as error:
                print(f"FAILED   {check.__name__}: {error}")
    print(f"{passed} of {len(checks)} passed, {skipped} skipped")
    if passed + skipped < len(checks):
        return 1
    return SKIPPED if skipped else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
