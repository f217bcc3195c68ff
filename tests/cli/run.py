#!/usr/bin/env python3
"""Runs the command-line tests of one file: what a command prints, line for line, and its exit code.

    run.py PROGRAM FILE.test [--update]

A file is a list of cases:

    # a remark
    case: a path where nothing lies
    setup: mkdir $TMP/empty
    run: remesh inspect $TMP/none
    exit: 4
    out: a line of standard output, in full
    err: remesh: error RM101: <*>
    err: ...

`run` and `setup` go to sh in an empty directory; `setup` may be repeated, and must succeed. In
them and in the expected lines stand
    $TMP      the case's own empty directory
    $HF       the Hugging Face fixture (read only by custom)
    $SHARDED  the same in several files
    $STATE    a training state: weights, optimizer and trainer_state.json; $TIED another one
    $MOE      a mixture of experts, likewise
    $LATER    $STATE one step later, $LATER_CKPT the same as a native checkpoint with tp=2,dp=2, both made once
    $STATES   states.py, which changes and steps training states
    $CKPT     a native checkpoint of it with tp=2,pp=2, made once for each file
    $COPY     a private copy of $CKPT, to be damaged by `setup`
    $REAL     a Hugging Face directory with another origin, which not every checkout has
A line `...` stands for any number of lines, `<*>` for any text within a line; all else is literal.
Without `out` (`err`) lines, nothing may be printed there. Lines of progress on standard error do not
count: a slow machine prints them, a fast one does not. `as: user` runs the case without root's rights,
where the runner has them; it is skipped where that cannot be done. `needs: real` skips a case where
$REAL is absent.

--update rewrites the `exit`, `out` and `err` lines of cases that fail from what the program says now.
Read the difference before you keep it. Durations become wildcards; other wildcards are lost.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

PROGRESS = re.compile(r"\w+ \d+% .*/s ETA [0-9:]+")
STATES = ["/usr/bin/python3", "-B", str(Path(__file__).resolve().with_name("states.py"))]
DURATION = re.compile(r"  [0-9.]+ s(?=$|  )")


@dataclass
class Case:
    name: str
    line: int
    setup: list = field(default_factory=list)
    run: str = ""
    exit: int = 0
    out: list = field(default_factory=list)
    err: list = field(default_factory=list)
    user: str = ""
    needs: str = ""
    remarks: list = field(default_factory=list)


def parse(path):
    cases, remarks = [], []
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            remarks.append(line)
            continue
        key, colon, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if not colon:
            raise SystemExit(f"{path}:{number}: not 'key: value': {line}")
        if key == "case":
            cases.append(Case(value, number, remarks=remarks))
            remarks = []
        elif key == "exit":
            cases[-1].exit = int(value)
        elif key in ("setup", "out", "err"):
            getattr(cases[-1], key).append(value)
        elif key in ("run", "as", "needs"):
            setattr(cases[-1], "user" if key == "as" else key, value)
        else:
            raise SystemExit(f"{path}:{number}: unknown key '{key}'")
    return cases


def line_matches(wanted, line):
    parts = (re.escape(part) for part in wanted.split("<*>"))
    return re.fullmatch(".*".join(parts), line) is not None


def lines_match(wanted, lines):
    if not wanted:
        return not lines
    if wanted[0] == "...":
        return any(lines_match(wanted[1:], lines[i:]) for i in range(len(lines) + 1))
    return bool(lines) and line_matches(wanted[0], lines[0]) and lines_match(wanted[1:], lines[1:])


class Runner:
    def __init__(self, program):
        self.program = str(Path(program).resolve())
        self.fixtures = Path(__file__).resolve().parents[2] / "fixtures"
        self.real = self.fixtures.parents[1] / "shared/data/real/stories260K_hf_derived"
        self.scratch = Path(tempfile.mkdtemp(prefix="remesh-cli-"))
        self.scratch.chmod(0o755)
        self.bin = self.scratch / "bin"
        self.bin.mkdir()
        (self.bin / "remesh").symlink_to(self.program)
        self.count = 0

    def checkpoint(self):
        path = self.scratch / "ckpt"
        if not path.exists():
            subprocess.run([self.program, "convert", self.fixtures / "llama-gqa", path, "--mesh",
                            "tp=2,pp=2", "-q"], check=True, stdout=subprocess.DEVNULL)
        return path

    def later(self):
        path = self.scratch / "later"
        if not path.exists():
            subprocess.run([*STATES, "step", self.fixtures / "llama-state", path], check=True)
        return path

    def later_checkpoint(self):
        path = self.scratch / "later-ckpt"
        if not path.exists():
            subprocess.run([self.program, "convert", self.later(), path, "--mesh", "tp=2,dp=2", "-q"], check=True,
                           stdout=subprocess.DEVNULL)
        return path

    def places(self, text):
        self.count += 1
        tmp = self.scratch / f"case{self.count}"
        tmp.mkdir()
        tmp.chmod(0o777)
        places = {"TMP": tmp, "REAL": self.real, "HF": self.fixtures / "llama-gqa",
                  "SHARDED": self.fixtures / "llama-gqa-sharded",
                  "STATE": self.fixtures / "llama-state", "TIED": self.fixtures / "llama-tied-state",
                  "MOE": self.fixtures / "moe-state"}
        if "$STATES" in text:
            places["STATES"] = " ".join(STATES)
        if "$LATER" in text:
            places |= {"LATER": self.later(), "LATER_CKPT": self.later_checkpoint()}
        if "$CKPT" in text or "$COPY" in text:
            places["CKPT"] = self.checkpoint()
        if "$COPY" in text:
            places["COPY"] = tmp / "copy"
            shutil.copytree(places["CKPT"], places["COPY"])
        return {name: str(path) for name, path in places.items()}

    def shell(self, command, places, user=""):
        env = {"PATH": f"{self.bin}:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TERM": "dumb", **places}
        env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        extra = {"user": "nobody", "group": "nogroup", "extra_groups": []} if user else {}
        return subprocess.run(["sh", "-c", command], cwd=places["TMP"], env=env, timeout=120,
                              stdin=subprocess.DEVNULL, capture_output=True, **extra)

    def works_for_others(self):
        try:
            return subprocess.run([self.bin / "remesh", "--version"], user="nobody",
                                  stdout=subprocess.DEVNULL).returncode == 0
        except OSError:
            return False

    def run(self, case):
        """Returns exit code, lines of stdout and lines of stderr, with places put back."""
        text = "\n".join([case.run, *case.setup, *case.out, *case.err])
        places = self.places(text)
        for command in case.setup:
            done = self.shell(command, places)
            if done.returncode != 0:
                raise SystemExit(f"{case.name}: setup failed: {command}\n{done.stderr.decode()}")
        done = self.shell(case.run, places, case.user)
        return (done.returncode, self.lines(done.stdout, places), self.lines(done.stderr, places))

    @staticmethod
    def lines(output, places):
        text = output.decode("utf-8", "backslashreplace")
        for name, path in sorted(places.items(), key=lambda item: -len(item[1])):
            text = text.replace(path, "$" + name)
        return [line for line in text.splitlines() if not PROGRESS.fullmatch(line)]

    def close(self):
        shutil.rmtree(self.scratch, ignore_errors=True)


def complaint(case, got):
    code, out, err = got
    problems = []
    if code != case.exit:
        problems.append(f"exit {code}, expected {case.exit}")
    for name, wanted, lines in (("out", case.out, out), ("err", case.err, err)):
        if not lines_match(wanted, lines):
            problems += [f"{name}, expected:", *(f"    {line}" for line in wanted),
                         f"{name}, printed:", *(f"    {line}" for line in lines)]
    if problems and code != case.exit:
        problems += ["stderr was:", *(f"    {line}" for line in err)]
    return problems


def obstacle(case, runner):
    """Why a case cannot be run here; empty if it can."""
    if case.user and os.geteuid() != 0:
        return "only root can become another user"
    if case.user and not runner.works_for_others():
        return f"another user may not run {runner.program}"
    if case.needs == "real" and not runner.real.exists():
        return f"{runner.real} is not there"
    return ""


def update(path, runner, cases):
    text = []
    for case in cases:
        code, out, err = got = runner.run(case)
        if not complaint(case, got):
            code, out, err = case.exit, case.out, case.err
        text += case.remarks + [f"case: {case.name}"]
        text += ["as: " + case.user] if case.user else []
        text += ["needs: " + case.needs] if case.needs else []
        text += [f"setup: {command}" for command in case.setup]
        text += [f"run: {case.run}"] + ([f"exit: {code}"] if code else [])
        text += [DURATION.sub("  <*>", f"out: {line}".rstrip()) for line in out]
        text += [DURATION.sub("  <*>", f"err: {line}".rstrip()) for line in err]
    Path(path).write_text("\n".join(text) + "\n")


def main(program, path, *flags):
    cases = parse(path)
    runner = Runner(program)
    failures = skipped = 0
    try:
        if "--update" in flags:
            update(path, runner, cases)
            return 0
        for case in cases:
            if obstacle(case, runner):
                print(f"skipped  {case.name}: {obstacle(case, runner)}")
                skipped += 1
                continue
            problems = complaint(case, runner.run(case))
            if problems:
                failures += 1
                print(f"FAILED   {path}:{case.line}: {case.name}\n  $ {case.run}")
                print("\n".join("  " + line for line in problems))
    finally:
        runner.close()
    print(f"{len(cases) - failures - skipped} of {len(cases)} cases passed, {skipped} skipped")
    return 1 if failures or not cases else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
