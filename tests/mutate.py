#!/usr/bin/env python3
"""Breaks the code on purpose, one change at a time, and sees the test fail that guards it.

    mutate.py BUILD_DIRECTORY [WORD...]
    mutate.py --check    only looks whether each still applies, and its test is there

tests/mutations.txt lists the changes:

    break: what goes wrong
    file: format/schema/src/placement.cpp
    old: a piece of one line that occurs once in the file
    new: what stands in its place
    test: the test that must fail: an executable of tests/ or tests/cli/*.py (and its options), or a *.test

Works on a copy of the tracked files below BUILD_DIRECTORY, which it configures and builds first. Only those
changes are tried that have one of the WORDs in their file's name or their description. A change that no longer
applies, does not compile, or is not noticed is an error.
"""

import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, fields
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_SECONDS = 900


@dataclass
class Change:
    broken: str = ""
    file: str = ""
    old: str = ""
    new: str = ""
    test: str = ""


def read_changes(path):
    changes = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        key, _, value = line.partition(":")
        key = "broken" if key == "break" else key
        if key not in {field.name for field in fields(Change)}:
            sys.exit(f"{path}:{number}: no such key: {key}")
        if key == "broken":
            changes.append(Change())
        setattr(changes[-1], key, value.strip())
    return changes


class Tree:
    """The copy and its build."""

    def __init__(self, home):
        self.source = home / "source"
        self.build = home / "build"
        self.output = ""  # of the last test

    def refresh(self):
        """Makes the copy what the checkout is; what has not changed keeps its time."""
        files = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=ROOT,
                               check=True, capture_output=True).stdout
        for name in files.decode().split("\0")[:-1]:
            here, there = ROOT / name, self.source / name
            if here.is_file() and not (there.is_file() and there.read_bytes() == here.read_bytes()):
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(here, there)
        subprocess.run(["cmake", "--preset", "dev", "-B", self.build], cwd=self.source, check=True,
                       stdout=subprocess.DEVNULL)

    def make(self, *targets):
        done = subprocess.run(["cmake", "--build", self.build, "--target", *targets], capture_output=True, text=True)
        return "" if done.returncode == 0 else done.stdout[-2000:]

    def test(self, name):
        """Builds and runs a test: what came of it."""
        name, *options = name.split()
        program = self.build / "cli/command/remesh"
        script = self.source / name
        if name.endswith(".py"):
            more = [self.source] if script.name in ("main_job_test.py", "faults_test.py") else []
            command = ["/usr/bin/python3", "-B", script, program, *more, *options]
        elif name.endswith(".test"):
            command = ["/usr/bin/python3", "-B", self.source / "tests/cli/run.py", program, script]
        else:
            command = [self.build / "tests" / name, *options]
        problem = self.make("remesh" if "/" in name else name)
        if problem:
            return f"does not compile: {problem}"
        try:
            done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            return "takes for ever"
        self.output = (done.stdout + done.stderr).decode(errors="replace")
        return "passed" if done.returncode == 0 else "failed"


def outcome(tree, change):
    path = tree.source / change.file
    text = path.read_text(encoding="utf-8")
    if text.count(change.old) != 1:
        return f"does not apply: {change.old!r} occurs {text.count(change.old)} times"
    try:
        path.write_text(text.replace(change.old, change.new), encoding="utf-8")
        return tree.test(change.test)
    finally:
        path.write_text(text, encoding="utf-8")


def check(changes):
    problems = []
    for change in changes:
        path = ROOT / change.file
        count = path.read_text(encoding="utf-8").count(change.old) if path.is_file() else 0
        if count != 1:
            problems.append(f"{change.file}: {change.old!r} occurs {count} times")
        name = change.test.split()[0]
        source = name if "/" in name else f"tests/{name.replace('.', '/')}.cpp"
        if not (ROOT / source).is_file():
            problems.append(f"{change.file}: {change.broken}: there is no test {name}")
    print("\n".join(problems) or f"{len(changes)} changes apply")
    return 1 if problems else 0


def main(build, *words):
    changes = read_changes(ROOT / "tests/mutations.txt")
    if build == "--check":
        return check(changes)
    wanted = [c for c in changes if not words or any(word in f"{c.file} {c.broken}" for word in words)]
    tree = Tree(Path(build).resolve())
    tree.refresh()
    for test in sorted({change.test for change in wanted}):
        result = tree.test(test)
        if result != "passed":
            sys.exit(f"{test}, with nothing broken: {result}\n{tree.output[-2000:]}")
    unseen = 0
    for change in wanted:
        begin = time.monotonic()
        result = outcome(tree, change)
        unseen += result != "failed"
        word = "seen" if result == "failed" else "NOT SEEN"
        print(f"{word:8}  {change.file}: {change.broken}  ({change.test}, {time.monotonic() - begin:.0f} s)"
              + ("" if result == "failed" else f"\n          {result}"), flush=True)
    print(f"{len(wanted) - unseen} of {len(wanted)} changes were seen by their test")
    return 1 if unseen else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
