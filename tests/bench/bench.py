#!/usr/bin/env python3
"""Measures; README.md beside this file defines every number.

    bench.py BUILD_DIRECTORY OUT.json [FILTER]

FILTER: only numbers whose names contain it. Works in /dev/shm and in BUILD_DIRECTORY/bench.
"""

import json
import os
import resource
import shutil
import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path

from compress import measure_compression

HERE = Path(__file__).resolve().parent
PAIRS = 7
TENSORS_100K = 100_000


class Bench:
    def __init__(self, build, wanted):
        self.program = build / "cli/command/remesh"
        self.synthesize = build / "tests/bench/synthesize"
        self.copy_memory = build / "tests/bench/copy_memory"
        self.one_rank = build / "tests/bench/one_rank"
        self.compress_loops = build / "tests/bench/compress_loops"
        self.places = {"tmpfs": Path("/dev/shm/remesh-bench"), "disk": build / "bench"}
        self.wanted = wanted
        self.numbers = []

    def wants(self, *names):
        return any(self.wanted in name for name in names)

    def note(self, name, value, unit, definition):
        if self.wanted in name:
            self.numbers.append({"name": name, "value": round(value, 4), "unit": unit, "definition": definition})
            print(f"{name:34} {value:10.3f} {unit:8} {definition}", flush=True)

    def run(self, *command):
        """Seconds and peak memory (MiB) of a command that must succeed."""
        begin = time.monotonic()
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begin
        if status != 0:
            raise SystemExit(f"failed: {command}")
        return seconds, usage.ru_maxrss / 1024

    def run_small(self, *command):
        """The same, where the peak memory counts: a child's begins with that of who starts it."""
        seconds, peak = self.run(*command)
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        if peak <= own:
            raise SystemExit(f"this process holds {own:.1f} MiB: what it starts cannot be seen to hold less")
        return seconds, peak

    def remesh(self, *arguments):
        return self.run(self.program, *arguments, "-q")

    def pairs(self, ours, theirs, count=PAIRS):
        """Alternates the two, each with its own clean-up; the median of their seconds / ours, and medians of both.

        Each side returns its seconds. One pair in front is not counted: it touches the memory.
        """
        ratios, all_ours, all_theirs = [], [], []
        for number in range(count + 1):
            if number % 2:
                their_seconds, our_seconds = theirs(), ours()
            else:
                our_seconds, their_seconds = ours(), theirs()
            if number:
                ratios.append(their_seconds / our_seconds)
                all_ours.append(our_seconds)
                all_theirs.append(their_seconds)
        return statistics.median(ratios), statistics.median(all_ours), statistics.median(all_theirs)

    def make(self, config, out, *options):
        shutil.rmtree(out, ignore_errors=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        self.run(self.synthesize, HERE / config, out, *options)

    def writer(self, out, *arguments):
        """One side of a pair: a run of remesh that writes `out`, which is then removed."""
        def side():
            seconds, _ = self.remesh(*arguments)
            shutil.rmtree(out)
            return seconds
        return side

    def copier(self, source, out, sync=True):
        """The other side: cp -r, and sync -f where both sides must end on the medium."""
        def side():
            command = 'cp -r "$0" "$1"' + (' && sync -f "$1"' if sync else "")
            seconds, _ = self.run("sh", "-c", command, source, out)
            shutil.rmtree(out)
            return seconds
        return side

    def speed(self, place):
        """reshard.*, convert.*: whole jobs against cp of the same bytes on the same file system."""
        names = [f"{verb}.{place}.{what}" for verb in ("reshard", "convert")
                 for what in ("vs_cp", "read_back.vs_cp", "to_hf.vs_cp", "seconds", "vs_memcpy", "vs_script")]
        names.append(f"plan.{place}.predicted")
        if not self.wants(*names):
            return
        home = self.places[place]
        shutil.rmtree(home, ignore_errors=True)
        hf, native, out, copy = (home / name for name in ("hf", "native", "out", "copy"))
        self.make("llama-6gib.json", hf, "--shard-size", "5GB")
        size = sum(path.stat().st_size for path in hf.iterdir())
        if self.wants(*[name for name in names if not name.startswith("reshard.")]):
            self.convert_speed(place, hf, out, copy, size)
        self.remesh("convert", hf, native, "--mesh", "tp=4")
        shutil.rmtree(hf)
        if self.wants(*names):
            self.reshard_speed(place, native, out, copy, size)
        shutil.rmtree(home)

    def convert_speed(self, place, hf, out, copy, size):
        cp = "seconds of cp -r SRC DST && sync -f DST / ours; HF (6 GiB) to native tp=4, " + place
        ratio, ours, theirs = self.pairs(self.writer(out, "convert", hf, out, "--mesh", "tp=4"), self.copier(hf, copy))
        self.note(f"convert.{place}.vs_cp", ratio, "ratio", cp)
        self.note(f"convert.{place}.seconds", ours, "s", f"ours; cp took {theirs:.2f} s, {size / 2**30:.2f} GiB")
        python = os.environ.get("REMESH_BENCH_PYTHON")
        if place == "tmpfs" and python and self.wants("convert.tmpfs.vs_script"):
            seconds, memory = self.run(python, HERE / "split_and_save.py", hf, out, 4)
            shutil.rmtree(out)
            self.note("convert.tmpfs.vs_script", seconds / ours, "ratio",
                      "seconds of split_and_save.py / ours, the same conversion, one run")
            self.note("convert.tmpfs.script_memory", memory, "MiB", "VmHWM of split_and_save.py")
        if self.wants(f"plan.{place}.predicted"):
            self.prediction(place, hf, out)

    def prediction(self, place, hf, out):
        """What `plan --io` says a convert will take, over what it takes; both as the program says them."""
        rates = self.places[place] / "rates.json"
        rates.write_bytes(self.output("bench", "io", self.places[place], "--json", "-q"))
        ratios = []
        for _ in range(3):
            said = json.loads(self.output("convert", hf, out, "--mesh", "tp=4", "--io", rates, "--json", "-q"))
            shutil.rmtree(out)
            ratios.append(said["predicted_seconds"]["cached"] / said["seconds"])
        self.note(f"plan.{place}.predicted", statistics.median(ratios), "ratio",
                  "seconds that --io predicts (source in memory) / seconds taken; HF to native tp=4, median of 3")

    def output(self, *arguments):
        command = [str(part) for part in (self.program, *arguments)]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout

    def reshard_speed(self, place, native, out, copy, size):
        text = "seconds of cp -r SRC DST && sync -f DST / ours; native tp=4 to tp=2,pp=2 (6 GiB), " + place
        job = ("reshard", native, out, "--mesh", "tp=2,pp=2")
        ratio, ours, theirs = self.pairs(self.writer(out, *job), self.copier(native, copy))
        self.note(f"reshard.{place}.vs_cp", ratio, "ratio", text)
        self.note(f"reshard.{place}.seconds", ours, "s", f"ours; cp took {theirs:.2f} s, {size / 2**30:.2f} GiB")
        plain = statistics.median(self.copier(native, copy, sync=False)() for _ in range(3))
        self.note(f"reshard.{place}.plain_cp_seconds", plain, "s", "cp -r alone, without sync; 3 runs")
        if self.wants(f"reshard.{place}.read_back.vs_cp"):
            ratio, _, _ = self.pairs(self.writer(out, *job, "--read-back"), self.copier(native, copy))
            self.note(f"reshard.{place}.read_back.vs_cp", ratio, "ratio", "the same with --read-back")
        if self.wants(f"convert.{place}.to_hf.vs_cp"):
            ratio, _, _ = self.pairs(self.writer(out, "convert", native, out, "--to", "hf", "--shard-size", "100GB"),
                                     self.copier(native, copy))
            self.note(f"convert.{place}.to_hf.vs_cp", ratio, "ratio", "native tp=4 to one file of HF against cp")
        if place == "tmpfs":
            memory = statistics.median(float(subprocess.run([self.copy_memory, str(size)], check=True,
                                                            capture_output=True).stdout) for _ in range(5))
            self.note("reshard.tmpfs.vs_memcpy", memory / ours, "ratio",
                      "seconds of memcpy of the same bytes on all cores, touched memory / ours")

    def verify(self):
        names = ["verify.full.vs_cat", "verify.deep.vs_cat"]
        if not self.wants(*names):
            return
        home = self.places["tmpfs"]
        shutil.rmtree(home, ignore_errors=True)
        hf, native = home / "hf", home / "native"
        self.make("llama-6gib.json", hf)
        self.remesh("convert", hf, native, "--mesh", "tp=4")
        shutil.rmtree(hf)

        def cat():
            return self.run("sh", "-c", 'cat "$0"/*.h5 > /dev/null', native)[0]

        for name in names:
            level = name.split(".")[1]
            if not self.wants(name):
                continue
            ratio, seconds, _ = self.pairs(lambda level=level: self.remesh("verify", native, "--level", level)[0], cat)
            self.note(name, ratio, "ratio",
                      f"seconds of cat FILES > /dev/null / verify --level {level}; native tp=4, 6 GiB, bf16, tmpfs")
            self.note(f"verify.{level}.seconds", seconds, "s", "ours")
        shutil.rmtree(home)

    def verify_narrow(self):
        """Numbers of one byte: the most to count for each byte that is read."""
        name = "verify.deep.f8.vs_cat"
        if not self.wants(name):
            return
        home = self.places["tmpfs"]
        shutil.rmtree(home, ignore_errors=True)
        hf, native = home / "hf", home / "native"
        hf.mkdir(parents=True)
        each, count = 1 << 26, 16
        tensors = {f"layers.{i}.weight": {"dtype": "F8_E4M3", "shape": [each // 4096, 4096],
                                          "data_offsets": [i * each, (i + 1) * each]} for i in range(count)}
        text = json.dumps(tensors, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        no_nan = bytes.maketrans(b"\x7f\xff", b"\x3f\xbf")
        with open(hf / "model.safetensors", "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for _ in range(count):
                file.write(os.urandom(each).translate(no_nan))
        self.remesh("convert", hf, native)
        shutil.rmtree(hf)
        ratio, _, _ = self.pairs(lambda: self.remesh("verify", native, "--level", "deep")[0],
                                 lambda: self.run("sh", "-c", 'cat "$0"/*.h5 > /dev/null', native)[0])
        self.note(name, ratio, "ratio", "the same with --level deep of 1 GiB of f8_e4m3, any of its numbers, one rank")
        shutil.rmtree(home)

    def diff(self):
        name = "diff.vs_cat"
        if not self.wants(name):
            return
        home = self.places["tmpfs"]
        shutil.rmtree(home, ignore_errors=True)
        hf, native = home / "hf", home / "native"
        self.make("llama-6gib.json", hf)
        self.remesh("convert", hf, native, "--mesh", "tp=4")

        def cat():
            return self.run("sh", "-c", 'cat "$0"/*.h5 "$1"/*.safetensors > /dev/null', native, hf)[0]

        def ours():
            return self.remesh("diff", native, hf)[0]

        ratio, seconds, _ = self.pairs(ours, cat)
        self.note(name, ratio, "ratio",
                  "seconds of cat of both sides' files > /dev/null / diff; native tp=4, HF, 6 GiB each, all equal, tmpfs")
        self.note("diff.seconds", seconds, "s", "ours")
        shutil.rmtree(home)

    def inspect(self):
        names = [f"inspect.100k.{kind}.seconds" for kind in ("hf", "native")]
        if not self.wants(*names):
            return
        home = self.places["tmpfs"]
        shutil.rmtree(home, ignore_errors=True)
        hf, native = home / "hf", home / "native"
        hf.mkdir(parents=True)
        tensors = {f"model.layers.{i // 100}.block.{i % 100}.weight":
                   {"dtype": "BF16", "shape": [2, 2], "data_offsets": [8 * i, 8 * i + 8]} for i in range(TENSORS_100K)}
        text = json.dumps(tensors, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        (hf / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + os.urandom(8 * TENSORS_100K))
        seconds, _ = self.remesh("convert", hf, native)
        self.note("convert.100k.seconds", seconds, "s", "100,000 small tensors, HF to native, tmpfs, one run")
        for name, path in zip(names, (hf, native)):
            seconds = statistics.median(self.remesh("inspect", path)[0] for _ in range(5))
            self.note(name, seconds, "s", "inspect of 100,000 tensors, files cached; median of 5")
        shutil.rmtree(home)

    def pieces(self):
        """What one rank of a large job holds, worked out by arithmetic."""
        for model, mesh, rank, zero in (("llama-405b", "tp=8,pp=16,dp=128", 9999, ["1"]),
                                        ("deepseek-v3", "pp=16,dp=128,ep=64", 1999, [])):
            name = f"pieces.{model}.one_rank"
            if not self.wants(name):
                continue
            said = subprocess.run([self.one_rank, HERE / f"{model}.json", mesh, str(rank), *zero], check=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self.note(name, float(said.stdout), "ms",
                      f"all boxes of rank {rank} of {mesh}{', states with --zero 1' if zero else ''}; median of 7")

    def memory(self):
        names = ["reshard.peak_memory", "reshard.peak_memory_64mib", "reshard.wide_rows.peak_memory_64mib"]
        if not self.wants(*names):
            return
        home = self.places["tmpfs"]
        for config, suffix in (("llama-6gib.json", ""), ("wide-rows.json", "wide_rows.")):
            shutil.rmtree(home, ignore_errors=True)
            hf, native, out = home / "hf", home / "native", home / "out"
            self.make(config, hf)
            self.remesh("convert", hf, native, "--mesh", "tp=4")
            shutil.rmtree(hf)
            for limit in ("1GiB", "64MiB"):
                _, peak = self.run_small(self.program, "reshard", native, out, "--mesh", "tp=2,pp=2",
                                         "--memory", limit, "-q")
                shutil.rmtree(out)
                tail = "" if limit == "1GiB" else "_64mib"
                self.note(f"reshard.{suffix}peak_memory{tail}", peak, "MiB",
                          f"VmHWM of native tp=4 to tp=2,pp=2 with --memory {limit}, {config}")
        shutil.rmtree(home)


def main(build, out, wanted=""):
    bench = Bench(Path(build).resolve(), wanted)
    bench.speed("tmpfs")
    bench.speed("disk")
    bench.pieces()
    bench.verify()
    bench.verify_narrow()
    bench.diff()
    bench.memory()
    measure_compression(bench)
    bench.inspect()  # last: it holds a list of 100,000 tensors
    Path(out).write_text(json.dumps(bench.numbers, indent=1) + "\n", encoding="utf-8")
    print(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
