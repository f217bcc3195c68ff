#!/usr/bin/env python3
"""A fault at every system call with which a job changes files. Each time the destination is not there, or whole; the
exit code is the one that cli/README.md promises; the source never changes; and the next job does what the first should.

    faults_test.py PROGRAM ROOT [--points N] [--kinds KIND,...] [--seed S] [--soak] [--again discard|resume] [--jobs N]
    faults_test.py PROGRAM ROOT --only KIND/CASE/CALL/DO/VALUE

How a call is hit. `strace --inject=...:when=K` counts for each thread and each system call by itself (measured with
strace 6.1: with `fsync,pwrite64` and K = 3 the third of either fails, in every thread that gets that far), so that it
cannot say "the 17th change of this job". faults.c, preloaded, counts them in one row for the whole process and fails
one. That this row leaves nothing out is checked first: of each case one run is traced by strace too, and both must tell
of the same calls in the same order. With `-j 1` a job makes the same calls every time; each run's own log must agree
with the clean run up to the fault. What strace can hit, it hits too, without the library (kind `strace`).

A destination is whole if its files are, byte for byte, those of the clean run, which `remesh verify` has judged.
"""

import argparse
import dataclasses
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from errno import EINTR, EIO, ENOSPC
from pathlib import Path
from zlib import crc32

from faults_job import Case, Sandbox, build_library, contents, unsynced

SECONDS_TO_STOP = 10
STORAGE = 7
LEFTOVER = 10
BULK = ("pwrite64", "pread64")  # most calls are these; all others are tried before more of them
RESTARTABLE = ("openat", "write", "pwrite64", "read", "pread64", "fsync", "fdatasync", "ftruncate", "flock")
TAKES_SPACE = ("openat", "write", "pwrite64", "ftruncate", "fsync", "fdatasync", "mkdir")
KINDS = ("kill", "error", "full", "dead", "read", "eintr", "short", "storm", "stop", "time", "strace")


@dataclasses.dataclass(frozen=True)
class Point:
    kind: str
    case: str
    at: str     # "m17": the 17th change; "r3": the third read; for strace "fsync:2"; for time a share of the job
    do: str     # as faults.c calls it
    value: int  # an errno, a signal or a seed
    line: str = ""

    def name(self):
        return "/".join((self.kind, self.case, self.at, self.do, str(self.value)))


def points_of_call(case, call):
    """Each fault that makes sense at that call."""
    def point(kind, do, value=0):
        return Point(kind, case.name, call.at, do, value, str(call))

    if call.at[0] == "r":
        yield point("read", "error", EIO)
    else:
        yield point("kill", "before")
        if call.name not in BULK:  # after a write is before the next
            yield point("kill", "after")
        yield point("error", "error", EIO)
        yield point("dead", "dead", EIO)
        yield point("stop", "signal", signal.SIGTERM)
        if call.name in TAKES_SPACE:
            yield point("error", "error", ENOSPC)
            yield point("full", "full", ENOSPC)
    if call.name in RESTARTABLE:
        yield point("eintr", "error", EINTR)
    if call.size > 1:
        yield point("short", "short")


def points_of(case, draw, times):
    """All points of a case; those at random `times` times."""
    points = [point for call in case.calls for point in points_of_call(case, call)]
    for number in range(10 * times):
        points.append(Point("storm", case.name, draw.choice(("m1", "r1")), "storm", draw.getrandbits(30)))
        asked = signal.SIGTERM if number % 2 else signal.SIGINT
        points.append(Point("time", case.name, f"{draw.random():.4f}", "signal", asked))
    for name, most in sorted(case.traced.items()):
        points += [Point("strace", case.name, f"{name}:{number}", do, EIO)
                   for number in range(1, most + 1) for do in ("kill", "error")]
    return points


def chosen(points, count, draw):
    """So many points: those at random times, and three of four from the calls that are rare, as far as there are."""
    if not count or count >= len(points):
        return points
    def is_bulk(point):
        return point.line.split(" ")[0] in BULK or point.at.split(":")[0] in BULK
    timed = [point for point in points if point.kind == "time"]
    timed = draw.sample(timed, min(len(timed), count // 4))
    count -= len(timed)
    rare = [point for point in points if point.kind != "time" and not is_bulk(point)]
    rare = draw.sample(rare, min(len(rare), count * 3 // 4))
    bulk = [point for point in points if is_bulk(point)]
    return timed + rare + draw.sample(bulk, min(len(bulk), count - len(rare)))


class Judge:
    """Runs a job with a fault and says what is wrong with what it did; nothing, one hopes."""

    def __init__(self, cases, again):
        self.cases = {case.name: case for case in cases}
        self.again = again

    def __call__(self, point):
        case = self.cases[point.case]
        with Sandbox(case, "fault") as box:
            try:
                bad = list(self.judge(point, case, box))
            except subprocess.TimeoutExpired:
                bad = ["it does not end"]
        return point, bad

    def judge(self, point, case, box):
        if point.kind == "strace":
            run = box.run_traced(*point.at.split(":"), point.do, point.value)
        elif point.kind == "time":
            run = box.run_stopped(float(point.at), point.value, SECONDS_TO_STOP)
        else:
            run = box.run(fault=(point.at, point.do, point.value))
            yield from self.judge_log(point, case, run)
        yield from getattr(self, f"judge_{point.kind}")(point, case, box, run)
        yield from self.judge_again(point, case, box)

    # Was it hit, and just there?
    def judge_log(self, point, case, run):
        number = int(point.at[1:])
        def of_series(calls):
            return [str(call) for call in calls if call.at[0] == point.at[0]]
        log = of_series(run.calls)
        if point.kind != "storm" and len(log) < number and case.is_exact:
            yield f"the job made only {len(log)} of these calls: the fault was not reached"
        if point.kind != "storm" and case.is_exact and log[:number] != of_series(case.calls)[:number]:
            yield "up to the fault the job made other calls than the clean one"

    def old_or_new(self, case, box, is_new, may_leave):
        """The destination must be there, whole, if `is_new`, and not there otherwise. None: either."""
        names = sorted(os.listdir(box.home))
        left = [name for name in names if name.startswith(f".{box.out.name}.remesh-")]
        strangers = set(names) - {box.out.name, *left}
        if strangers:
            yield f"beside the destination there is {sorted(strangers)}"
        if box.out.name in names:
            if is_new is False:
                yield "the destination is visible"
            if contents(box.out) != case.whole:
                yield "the destination is visible and not whole"
        elif is_new:
            yield "the destination is not there"
        if left and not may_leave:
            yield f"it left {left}"
        if not box.source_is_unchanged():
            yield "the source changed"

    def is_renamed(self, point, run):
        """Whether the job published before the fault."""
        for call in run.calls:
            if call.name == "renameat2":
                number = int(call.at[1:])
                return number < int(point.at[1:]) or (call.at == point.at and point.do == "after")
        return False

    def expect_exit(self, run, *codes):
        if run.code not in codes:
            yield f"exit {run.code}, expected {' or '.join(map(str, codes))}: {run.errors.strip()}"

    def judge_kill(self, point, case, box, run):
        if case.is_exact or run.code != 0:
            yield from self.expect_exit(run, -signal.SIGKILL)
        yield from self.old_or_new(case, box, self.is_renamed(point, run) or run.code == 0, may_leave=True)

    def judge_error(self, point, case, box, run):
        renamed = self.is_renamed(point, run)
        yield from self.expect_exit(run, STORAGE)
        if "error" not in run.errors or not any(str(path) in run.errors for path in (box.home, case.source)):
            yield f"its message names no path: {run.errors.strip()}"
        if renamed and "durability unknown" not in run.errors:
            yield f"published, but it does not say 'durability unknown': {run.errors.strip()}"
        may_leave = point.do == "dead" or (case.has_leftover and self.is_in_leftover(point, case))
        yield from self.old_or_new(case, box, renamed, may_leave)

    def is_in_leftover(self, point, case):
        """What could not be removed or taken over stays."""
        removed = [int(call.at[1:]) for call in case.calls if call.name == "unlinkat"]
        return point.at[0] == "r" or int(point.at[1:]) <= max(removed)

    judge_full = judge_dead = judge_read = judge_error

    def judge_short(self, point, case, box, run):
        yield from self.expect_exit(run, 0)
        yield from self.old_or_new(case, box, True, may_leave=False)

    judge_storm = judge_short

    def judge_eintr(self, point, case, box, run):
        if run.code != 0 and point.line.startswith(("openat", "ftruncate")) and ".h5 " in point.line:
            # libhdf5 makes these two, and does not try again. No system is known that interrupts them.
            yield from self.judge_error(point, case, box, run)
        else:
            yield from self.judge_short(point, case, box, run)

    def judge_stop(self, point, case, box, run):
        if run.seconds > SECONDS_TO_STOP:
            yield f"it took {run.seconds:.1f} s to stop"
        if point.kind == "time":  # it may have no handler yet, and leaves only what was there
            yield from self.expect_exit(run, 0, 128 + point.value, -point.value)
        elif not case.is_exact:
            yield from self.expect_exit(run, 0, 128 + point.value)
        else:  # publishing is an unlink, a sync and a rename; once that is begun it is done
            publishes = int(point.at[1:]) >= case.rename_number() - 2
            yield from self.expect_exit(run, 0 if publishes else 128 + point.value)
        yield from self.old_or_new(case, box, run.code == 0, may_leave=case.has_leftover)

    judge_time = judge_stop

    def judge_strace(self, point, case, box, run):
        if run.code == 0 and not case.is_exact:  # no thread made so many calls
            yield from self.old_or_new(case, box, True, may_leave=False)
        elif point.do == "kill":
            yield from self.expect_exit(run, -signal.SIGKILL, 128 + signal.SIGKILL)
            yield from self.old_or_new(case, box, None, may_leave=True)
        else:
            yield from self.expect_exit(run, STORAGE)
            unknown = "durability unknown" in run.errors
            yield from self.old_or_new(case, box, unknown, may_leave=case.has_leftover)

    def judge_again(self, point, case, box):
        """The same job anew, once the fault is gone."""
        names = os.listdir(box.home)
        if not names and crc32(point.name().encode()) % 16:
            return  # the job would find what the clean one found; a sixteenth of them try it all the same
        if box.out.name in names:
            return
        if names and not case.has_leftover:
            run = box.run()
            yield from self.expect_exit(run, LEFTOVER)
            if names[0] not in run.errors or "--discard" not in run.errors:
                yield f"a second run does not name what the first left: {run.errors.strip()}"
            if sorted(os.listdir(box.home)) != sorted(names):
                yield "a second run changed what the first left"
        run = box.run(f"--{self.again}")
        for problem in self.expect_exit(run, 0):
            yield f"--{self.again} afterwards: {problem}"
        for problem in self.old_or_new(case, box, True, may_leave=False):
            yield f"--{self.again} afterwards: {problem}"


def cases_of(program, root, scratch, soak):
    """The jobs, and the checkpoints that they start from."""
    fixtures = root / "fixtures"
    made = {}
    for name, fixture, mesh in (("small", "llama-gqa", "tp=2,pp=2"), ("state", "llama-state", "tp=2,dp=2")):
        if name == "small" or soak:
            made[name] = scratch / f"ck-{name}"
            subprocess.run([program, "convert", fixtures / fixture, made[name], "--mesh", mesh, "-q"], check=True,
                           stdout=subprocess.DEVNULL)
    hf = scratch / "hf"
    shutil.copytree(fixtures / "llama-gqa", hf)
    jobs = [
        ("convert", "convert", hf, ["--mesh", "tp=2,pp=2"]),
        ("reshard", "reshard", made["small"], ["--mesh", "tp=1,pp=3"]),
        ("to-hf", "convert", made["small"], ["--to", "hf"]),
        ("read-back", "reshard", made["small"], ["--mesh", "tp=2", "--read-back"]),
        ("packed", "convert", hf, ["--mesh", "tp=2", "--compress", "zstd"]),
        ("leftover", "convert", made["small"], ["--to", "hf", "--shard-size", "200KB", "--discard"]),
    ]
    if soak:
        sharded, moe = scratch / "sharded", scratch / "moe"
        shutil.copytree(fixtures / "llama-gqa-sharded", sharded)
        shutil.copytree(fixtures / "moe-state", moe)
        jobs += [
            ("sharded", "convert", sharded, ["--mesh", "tp=4,pp=2"]),
            ("two-copies", "reshard", made["small"], ["--mesh", "dp=2", "--copies", "2"]),
            ("state", "reshard", made["state"], ["--mesh", "tp=4,dp=2", "--zero", "1"]),
            ("state-to-hf", "convert", made["state"], ["--to", "hf"]),
            ("experts", "convert", moe, ["--mesh", "tp=2,ep=2", "--read-back"]),
            ("threads", "convert", hf, ["--mesh", "tp=2,pp=2", "-j2"]),
            ("threads-reshard", "reshard", made["state"], ["--mesh", "tp=2,pp=2", "-j2", "--read-back"]),
        ]
    return [Case(program, scratch, *job) for job in jobs]


def check_clean(case):
    """What the clean run must show before faults mean anything."""
    case.learn()
    traced = case.trace()
    if case.is_exact and traced != [(call.name, call.path) for call in case.calls if call.at[0] == "m"]:
        sys.exit(f"{case.name}: strace and the preloaded library tell of different calls")
    for problem in unsynced(case.calls):
        print(f"BAD  {case.name}: {problem}")
        yield problem


def point_of(text, cases):
    kind, case, at, do, value = text.split("/")
    lines = {call.at: str(call) for call in cases[0].calls}
    return Point(kind, case, at, do, int(value), lines.get(at, ""))


def tell(point, problems, options):
    again = shlex.join([sys.argv[0], options.program, options.root, "--only", point.name(),
                        *(["--soak"] if options.soak else [])])
    print(f"BAD  {point.name()}  at: {point.line or point.at}")
    for problem in problems:
        print(f"     {problem}")
    print(f"     again with: {again}", flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("root")
    parser.add_argument("--points", type=int, default=0, help="so many, drawn; without it all")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--cases", default="", help="only these")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--soak", action="store_true", help="over more jobs, with five times the random points")
    parser.add_argument("--again", choices=("discard", "resume"), default="discard")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", help="one point, as a failure names it")
    return parser.parse_args()


def main():
    options = parse_arguments()
    draw = random.Random(options.seed)
    program, root = str(Path(options.program).resolve()), Path(options.root).resolve()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="remesh-faults-") as name:
        scratch = Path(name).resolve()
        build_library(Path(__file__).with_name("faults.c"), scratch)
        cases = cases_of(program, root, scratch, options.soak)
        wanted = options.only.split("/")[1:2] if options.only else options.cases.split(",")
        cases = [case for case in cases if case.name in wanted or wanted == [""]]
        bad = sum(1 for case in cases for _ in check_clean(case))
        if options.only:
            points, there_are = [point_of(options.only, cases)], 1
        else:
            points = [point for case in cases for point in points_of(case, draw, 5 if options.soak else 1)
                      if point.kind in options.kinds.split(",")]
            there_are = len(points)
            points = chosen(points, options.points, draw)
        draw.shuffle(points)
        with ThreadPoolExecutor(options.jobs) as pool:
            for point, problems in pool.map(Judge(cases, options.again), points):
                if problems:
                    bad += 1
                    tell(point, problems, options)
    counts = Counter(point.kind for point in points)
    print(", ".join(f"{kind} {counts[kind]:,}" for kind in KINDS if counts[kind]))
    print(f"{len(points):,} points: {bad} bad (of {there_are:,}; seed {options.seed}, "
          f"{time.monotonic() - begin:.0f} s)")
    return 1 if bad or not points else 0


if __name__ == "__main__":
    sys.exit(main())
