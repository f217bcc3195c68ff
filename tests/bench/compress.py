"""compress.*: jobs that pack and unpack, against threads that do nothing but zstd; README.md defines every number."""

import os
import re
import shutil
import statistics
import subprocess

TIMES = 5
LEVEL = 1
LEAST = "64MiB"  # that any job may be given
NAMES = ("compress.write.vs_loops", "compress.write.mb_per_s", "compress.read.vs_loops", "compress.read.mb_per_s",
         "compress.verify.vs_loops", "compress.verify.mb_per_s", "compress.ratio",
         "compress.peak_memory", "compress.read.peak_memory")


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

    def loops(self):
        """MB/s to compress and to decompress, and the ratio, of as many threads as a job has workers."""
        command = [self.bench.compress_loops, *self.hf.glob("*.safetensors"), "2", str(LEVEL), str(self.workers)]
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
    writes, reads, verifies, of_loops = [], [], [], []
    for number in range(TIMES + 1):
        packing, unpacking, _ = run.loops()
        write = size / 1e6 / run.job(*run.to_pack)
        shutil.rmtree(run.packed, ignore_errors=True)
        run.out.rename(run.packed)
        read = size / 1e6 / run.job(*run.to_unpack)
        verify = size / 1e6 / bench.remesh("verify", run.packed, "-j", run.workers)[0]
        if number:  # the first only touches the memory
            writes.append((write / packing, write))
            reads.append((read / unpacking, read))
            verifies.append((verify / unpacking, verify))
            of_loops.append((packing, unpacking))
    note_speeds(bench, run.workers, writes, reads, verifies, of_loops)
    stored = sum(path.stat().st_size for path in run.packed.glob("*.h5"))
    bench.note("compress.ratio", size / stored, "ratio",
               f"bytes of the HF file / of the shards; bf16, deviation 0.02, zstd {LEVEL}")
    note_memory(bench, run)
    shutil.rmtree(home)


def note_speeds(bench, workers, writes, reads, verifies, of_loops):
    packing, unpacking = (statistics.median(column) for column in zip(*of_loops))
    load = f"{workers} workers, load {os.getloadavg()[0]:.1f}"
    bench.note("compress.write.vs_loops", statistics.median(ratio for ratio, _ in writes), "ratio",
               f"HF to native --compress zstd:{LEVEL} / {workers} threads of zstd alone; 1 GiB, tmpfs; {load}")
    bench.note("compress.write.mb_per_s", statistics.median(speed for _, speed in writes), "MB/s",
               f"of plain bytes; the loops: {packing:.0f}")
    bench.note("compress.read.vs_loops", statistics.median(ratio for ratio, _ in reads), "ratio",
               "the same of native to HF / threads that decompress")
    bench.note("compress.read.mb_per_s", statistics.median(speed for _, speed in reads), "MB/s",
               f"of plain bytes; the loops: {unpacking:.0f}")
    bench.note("compress.verify.vs_loops", statistics.median(ratio for ratio, _ in verifies), "ratio",
               "the same of verify --level full, which writes nothing")
    bench.note("compress.verify.mb_per_s", statistics.median(speed for _, speed in verifies), "MB/s", "of plain bytes")


def note_memory(bench, run):
    for name, job in (("compress.peak_memory", run.to_pack), ("compress.read.peak_memory", run.to_unpack)):
        shutil.rmtree(run.out, ignore_errors=True)
        limit = run.least_memory(*job)
        _, peak = bench.run_small(bench.program, *job, "-j", run.workers, "--memory", limit, "-q")
        bench.note(name, peak, "MiB", f"VmHWM with --memory {limit}, the least that the job takes")
