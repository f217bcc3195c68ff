#!/usr/bin/env python3
"""What zsh completes, in a terminal of its own, with the script read and with the script installed.

    completion_test.py PROGRAM

(What bash completes stands in explain.test.)
"""

import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LONGEST_WAIT_S = 60

# What is typed before the tab, and what the line must be then.
TYPED = [
    ("remesh ver", "remesh verify "),
    ("remesh some-", "remesh some-checkpoint/"),
    ("remesh verify --lev", "remesh verify --level "),
    ("remesh verify a --against b --ju", "remesh verify a --against b --junit "),
    ("remesh verify --nonsen", "remesh verify --nonsen"),
    ("remesh reshard --mem", "remesh reshard --memory "),
    ("remesh inspect some-", "remesh inspect some-checkpoint/"),
    ("remesh verify --junit some-", "remesh verify --junit some-checkpoint/"),
]

# Shows the line as the shell has it, and empties it: what a terminal makes of it is drawn piece by piece. What comes
# before the next prompt may be read by the terminal in another mode, so that is waited for.
SHOW = "show() { zle -I; print -r -- \"<<$BUFFER>>\"; BUFFER= }; zle -N show; bindkey '^Xs' show; PS1='(rea''dy)'"
TAB, SHOW_KEYS, READY = "\t", "\x18s", r"\(ready\)"


class Shell:
    """An interactive zsh without anybody's settings."""

    def __init__(self, directory, bin_directory):
        environment = {"PATH": f"{bin_directory}:{os.environ['PATH']}", "TERM": "vt100",
                       "HOME": str(directory), "LC_ALL": "C.UTF-8"}
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.chdir(directory)
            os.execvpe("zsh", ["zsh", "-f", "-i"], environment)
        os.write(self.terminal, f"{SHOW}\n".encode())
        self.read_until(f"({READY})")

    def read_until(self, pattern):
        end = time.monotonic() + LONGEST_WAIT_S
        text = ""
        while not (found := re.search(pattern, text)):
            ready, _, _ = select.select([self.terminal], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"the shell hangs; it said {text!r}")
            text += os.read(self.terminal, 65536).decode(errors="replace")
        return found[1]

    def run(self, line):
        os.write(self.terminal, f"{line}; print '(do''ne)'\n".encode())
        self.read_until(rf"(?s)(\(done\)).*{READY}")

    def completed(self, typed):
        os.write(self.terminal, f"{typed}{TAB}{SHOW_KEYS}".encode())
        return self.read_until(f"(?s)<<(.*?)>>.*{READY}")

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.child, 0)


def check(shell, how, *setup):
    for line in setup:
        shell.run(line)
    failures = 0
    for typed, wanted in TYPED:
        line = shell.completed(typed)
        if line != wanted:
            print(f"FAILED   {how}: '{typed}' becomes '{line}', but '{wanted}' is expected")
            failures += 1
    return failures


def main(program):
    with tempfile.TemporaryDirectory(prefix="remesh-completion-") as directory:
        scratch = Path(directory)
        (scratch / "bin").mkdir()
        (scratch / "bin/remesh").symlink_to(Path(program).resolve())
        (scratch / "functions").mkdir()
        script = subprocess.run([program, "completion", "zsh"], check=True, capture_output=True).stdout
        (scratch / "functions/_remesh").write_bytes(script)
        (scratch / "home/some-checkpoint").mkdir(parents=True)
        compinit = "autoload -Uz compinit; compinit -u -D"
        failures = 0
        for how, setup in (("read", [compinit, "source <(remesh completion zsh)"]),
                           ("installed", [f"fpath=({scratch}/functions $fpath)", compinit])):
            shell = Shell(scratch / "home", scratch / "bin")
            try:
                failures += check(shell, how, *setup)
            finally:
                shell.close()
        print(f"zsh: {failures} of {2 * len(TYPED)} failed")
        return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
