"""What faults_test.py needs to run jobs: one case, its clean run, and a place for a run with a fault."""

import dataclasses
import hashlib
import itertools
import os
import re
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

SECONDS_TO_END = 60
LIBRARY = "faults.so"
TRACED = ("open,openat,creat,write,pwrite64,pwritev,pwritev2,writev,ftruncate,truncate,fallocate,fsync,fdatasync,"
          "mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir,flock,link,linkat,symlink,symlinkat,"
          "copy_file_range,sendfile,mmap,chmod,fchmod,fchmodat,utimensat")
AS_THE_LIBRARY_SAYS = {"mkdirat": "mkdir", "unlink": "unlinkat", "rmdir": "unlinkat", "open": "openat",
                       "creat": "openat", "rename": "renameat2", "renameat": "renameat2"}
ONE_TRACED = re.compile(r"^\d+ +(\w+)\((.*)\) += ")


def build_library(source, scratch):
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
                    source, "-o", scratch / LIBRARY], check=True)


def contents(directory):
    """The digest of every file below, and every directory."""
    return {str(path.relative_to(directory)): path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(directory.rglob("*"))}


@dataclasses.dataclass(frozen=True)
class Call:
    at: str      # m17
    name: str
    path: str    # that of the home is left out
    offset: int
    size: int

    def __str__(self):
        return f"{self.name} {self.path} {self.offset} {self.size}"


@dataclasses.dataclass(frozen=True)
class Run:
    code: int
    errors: str
    seconds: float
    calls: list


def read_log(path, home):
    calls = []
    for line in path.read_text().splitlines() if path.exists() else []:
        at, name, *middle, offset, size = line.split(" ")
        calls.append(Call(at, name, " ".join(middle).removeprefix(str(home)), int(offset), int(size)))
    return calls


def parent(path):
    return path.rpartition("/")[0]


def unsynced(calls):
    """What the commit protocol owes: all that is published was synced before, names and bytes, and the new name after;
    and nothing but the commit itself changes once that is begun."""
    dirty, committing = set(), ""
    for call in calls:
        if call.name == "fsync":
            dirty.discard(call.path)
        if call.at[0] == "r" or call.name in ("fsync", "flock", "unlinkat"):
            continue
        is_certificate = call.path.endswith("/proof.json")  # no part of the checkpoint
        if committing and call.name != "renameat2" and call.path != committing and not is_certificate:
            yield f"{call} comes after the commit is begun"
        if call.path.endswith("/COMMIT"):
            committing = call.path
        if call.name == "renameat2":
            yield from (f"'{path}' is published and was not synced" for path in sorted(dirty) if path)
            dirty = {parent(call.path)}
            continue
        if call.name != "mkdir":
            dirty.add(call.path)
        if call.name in ("openat", "mkdir"):
            dirty.add(parent(call.path))
    yield from (f"the new name in '{path or '/'}' was not synced" for path in dirty)


class Case:
    """One job, and what it does when nothing is in its way."""

    def __init__(self, program, scratch, name, verb, source, arguments):
        self.program, self.scratch, self.name, self.source = program, scratch, name, source
        self.verb = verb
        self.has_leftover = "--discard" in arguments
        self.is_exact = "-j2" not in arguments
        self.arguments = arguments + ["-q"] + (["-j1"] if self.is_exact else [])
        self.leftover = None
        self.numbers = itertools.count()
        self.traced = {}

    def command(self, out, *options):
        # Where a job discards, the next one does as well.
        options = [option for option in options if "--discard" not in self.arguments]
        return [self.program, self.verb, self.source, out, *self.arguments, *options]

    def learn(self):
        """The clean run: its calls, its files, its duration, and the same again."""
        self.source_before = contents(self.source)
        self.source_stamp = self.stamp_source()
        if self.has_leftover:
            self.make_leftover()
        with Sandbox(self, "clean") as box:
            run = box.run()
            if run.code != 0:
                raise SystemExit(f"{self.name}: the clean run ends with {run.code}: {run.errors}")
            subprocess.run([self.program, "verify", box.out, "-q"], check=True, stdout=subprocess.DEVNULL)
            self.whole, self.calls, self.seconds = contents(box.out), run.calls, run.seconds

    def make_leftover(self):
        """What a job leaves that is killed just before it publishes."""
        self.has_leftover = False
        with Sandbox(self, "left") as box:
            clean = box.run()
            (rename,) = (call.at for call in clean.calls if call.name == "renameat2")
            shutil.rmtree(box.out)
            box.run(fault=(rename, "before", 0))
            (left,) = os.listdir(box.home)
            self.leftover = self.scratch / "leftover" / left
            shutil.copytree(box.home / left, self.leftover)
        self.has_leftover = True

    def rename_number(self):
        return next(int(call.at[1:]) for call in self.calls if call.name == "renameat2")

    def stamp_source(self):
        return [(path, status.st_mtime_ns, status.st_size, status.st_ino)
                for path in sorted(self.source.rglob("*")) for status in [path.stat()]]

    def trace(self):
        """The changes of a run as strace sees them: names and paths, in order. Keeps how many calls of a name one
        thread makes: so many points has `when=`."""
        with Sandbox(self, "trace") as box:
            trace = box.home.with_suffix(".trace")
            subprocess.run(["strace", "-f", "-qq", "-y", "-s0", "-o", trace, "-e", f"trace={TRACED}",
                            *self.command(box.out)], check=True, env=box.environment(preload=False),
                           stdout=subprocess.DEVNULL)
            changes, counts = [], Counter()
            for line in trace.read_text().splitlines():
                change = self.change_of(line, box)
                if change:
                    changes.append((AS_THE_LIBRARY_SAYS.get(change[0], change[0]), change[1]))
                    if change[0] != "openat":  # most of those only read
                        counts[line.split()[0], change[0]] += 1
        for (_, name), count in counts.items():
            self.traced[name] = max(count, self.traced.get(name, 0))
        return changes

    def change_of(self, line, box):
        found = ONE_TRACED.match(line)
        if not found:
            return None
        name, arguments = found.groups()
        if name == "openat" and "O_CREAT" not in arguments:
            return None
        if name == "mmap" and ("MAP_SHARED" not in arguments or "PROT_WRITE" not in arguments):
            return None
        quoted = re.findall(r'"([^"]*)"', arguments)
        described = re.findall(r"<([^>]*)>", arguments)
        if name in ("write", "pwrite64", "ftruncate", "fsync", "fdatasync", "flock") or not quoted:
            path = described[0] if described else ""
        else:
            path = quoted[-1] if name.startswith("rename") else quoted[0]
            if not path.startswith("/"):
                path = f"{described[0]}/{path}"
        if not path.startswith(str(self.scratch)):
            return None
        return name, path.removeprefix(str(box.home))


class Sandbox:
    """A directory of its own for the destination of one run, and the log of its calls."""

    def __init__(self, case, name):
        self.case = case
        self.home = case.scratch / f"{case.name}-{name}-{next(case.numbers)}"
        self.out = self.home / "out"
        self.log = self.home.with_suffix(".log")

    def __enter__(self):
        self.home.mkdir()
        if self.case.has_leftover:
            shutil.copytree(self.case.leftover, self.home / self.case.leftover.name)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.home)
        for suffix in (".log", ".trace"):
            self.home.with_suffix(suffix).unlink(missing_ok=True)

    def environment(self, preload=True, fault=None):
        environment = {"PATH": os.environ.get("PATH", ""), "FAULT_ROOT": str(self.case.scratch),
                       "UBSAN_OPTIONS": os.environ.get("UBSAN_OPTIONS", ""),
                       # Of a program with sanitizers: the library stands before theirs, and strace before the leaks'.
                       "ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0:detect_leaks=0"}
        if preload:
            environment |= {"LD_PRELOAD": str(self.case.scratch / LIBRARY), "FAULT_LOG": str(self.log)}
        if fault:
            environment |= {"FAULT_AT": fault[0], "FAULT_DO": fault[1], "FAULT_ERRNO": str(int(fault[2]))}
        return environment

    def start(self, command, **how):
        self.log.unlink(missing_ok=True)
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
                                env=self.environment(**how))

    def end(self, process, begin, seconds=SECONDS_TO_END):
        try:
            errors = process.communicate(timeout=seconds)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return Run(process.returncode, errors, time.monotonic() - begin, read_log(self.log, self.home))

    def run(self, *options, fault=None):
        begin = time.monotonic()
        return self.end(self.start(self.case.command(self.out, *options), fault=fault), begin)

    def run_traced(self, name, number, do, error):
        """Without the library: strace alone."""
        tamper = "signal=KILL" if do == "kill" else f"error={error}"
        command = ["strace", "-f", "-qq", "-o", "/dev/null", f"--inject={name}:{tamper}:when={number}",
                   *self.case.command(self.out)]
        begin = time.monotonic()
        return self.end(self.start(command, preload=False), begin)

    def run_stopped(self, share, number, seconds):
        """Sends a signal after that share of the usual time."""
        process = self.start(self.case.command(self.out), preload=False)
        time.sleep(share * self.case.seconds)
        begin = time.monotonic()
        process.send_signal(number)
        return self.end(process, begin, seconds)

    def source_is_unchanged(self):
        return self.case.stamp_source() == self.case.source_stamp
