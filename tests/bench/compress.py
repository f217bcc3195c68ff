"""compress.*: jobs that pack and unpack, against threads that do nothing but zstd; README.md defines every number."""

import os
import re
import shutil
import statistics
import subprocess

TIMES = 5
LEVEL = 1
LEAST = "64MiB"  # that any job may be given
JOBS = ("write", "read", "verify")
KINDS = ("vs_loops", "vs_same_loops", "mb_per_s")
NAMES = (*(f"compress.{job}.{kind}" for job in JOBS for kind in KINDS),
         "compress.ratio", "compress.peak_memory", "compress.read.peak_memory")
WHAT = {"write": f"HF to native --compress zstd:{LEVEL}", "read": "native to HF", "verify": "verify --level full"}


class Compression:
    def __init__(self, bench, home):
        self.bench = bench
        self.hf, self.packed, self.out = (home / name for name in ("hf", "packed", "out"))
        self.workers = len(os.sched_getaffinity(0))
        self.to_pack = ("convert", self.hf, self.out, "--mesh", "tp=4", "--compress", f"zstd:{LEVEL}")
        self.to_unpack = ("convert", self.packed, self.out, "--to", "hf")

    def make(self):
        """Returns the bytes of the tensors."""
        self.bench.make("llama-1gib.json", self.hf, "--normal", "--shard-size", "100GB")
        return sum(path.stat().st_size for path in self.hf.glob("*.safetensors"))

    def loops(self, *options):
        """MB/s to compress and to decompress, and the ratio, of as many threads as a job has workers."""
        command = [self.bench.compress_loops, *self.hf.glob("*.safetensors"), "2", str(LEVEL), str(self.workers), *options]
        said = subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE).stdout
        return [float(number) for number in said.split()]

    def job(self, *arguments):
        """Seconds of a job that writes `out`."""
        shutil.rmtree(self.out, ignore_errors=True)
        return self.bench.remesh(*arguments, "-j", self.workers)[0]

    def least_memory(self, *job):
        """The least --memory that the job runs with: what refuses less says it."""
        command = (self.bench.program, *job, "-j", self.workers, "--memory", LEAST, "--dry-run")
        said = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        found = re.search(r"--memory (\d+MiB)", said.stderr)
        return found[1] if found else LEAST


def measure_compression(bench):
    if not bench.wants(*NAMES):
        return
    home = bench.places["tmpfs"]
    shutil.rmtree(home, ignore_errors=True)
    run = Compression(bench, home)
    size = run.make()
    rounds = []
    for _ in range(TIMES + 1):
        loops, same = run.loops(), run.loops("ours")
        write = run.job(*run.to_pack)
        shutil.rmtree(run.packed, ignore_errors=True)
        run.out.rename(run.packed)
        seconds = (write, run.job(*run.to_unpack), bench.remesh("verify", run.packed, "-j", run.workers)[0])
        rounds.append((loops, same, [size / 1e6 / each for each in seconds]))
    note_speeds(bench, run.workers, rounds[1:])  # the first only touches the memory
    stored = sum(path.stat().st_size for path in run.packed.glob("*.h5"))
    bench.note("compress.ratio", size / stored, "ratio",
               f"bytes of the HF file / of the shards; bf16, deviation 0.02, zstd {LEVEL}")
    note_memory(bench, run)
    shutil.rmtree(home)


def note_speeds(bench, workers, rounds):
    load = f"{workers} workers, load {os.getloadavg()[0]:.1f}"
    for number, job in enumerate(JOBS):
        at = min(number, 1)  # to compress, or to decompress
        speeds = [ours[number] for _, _, ours in rounds]
        against = [statistics.median(pair[which][at] for pair in rounds) for which in (0, 1)]
        for which, kind in enumerate(KINDS[:2]):
            ratio = statistics.median(speed / pair[which][at] for speed, pair in zip(speeds, rounds))
            loops = "as it is" if which == 0 else "with our parameters"
            bench.note(f"compress.{job}.{kind}", ratio, "ratio",
                       f"{WHAT[job]} / {workers} threads of zstd {loops}, nothing else; 1 GiB, tmpfs; {load}")
        bench.note(f"compress.{job}.mb_per_s", statistics.median(speeds), "MB/s",
                   f"of plain bytes; the loops: {against[0]:.0f}, with our parameters {against[1]:.0f}")


def note_memory(bench, run):
    for name, job in (("compress.peak_memory", run.to_pack), ("compress.read.peak_memory", run.to_unpack)):
        shutil.rmtree(run.out, ignore_errors=True)
        limit = run.least_memory(*job)
        _, peak = bench.run_small(bench.program, *job, "-j", run.workers, "--memory", limit, "-q")
        bench.note(name, peak, "MiB", f"VmHWM with --memory {limit}, the least that the job takes")
