#!/usr/bin/env python3
"""Signatures pass between Debian's minisign and the store in both directions.

    minisign_test.py SIGNATURE_PROGRAM
"""

import subprocess
import sys
import tempfile
from pathlib import Path

CONTENTS = {"empty": b"", "short": b"hello", "long": bytes(range(256)) * 1000}
COMMENTS = ["step:1000", "a\tb", "", "\u00e9\u4e2d", "c" * 1024]
PASSWORD = "correct horse"


def run(command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False, **options)


def expect(condition, what, result):
    if not condition:
        sys.exit(f"{what}:\n{result.args}\n{result.returncode}\n{result.stdout}{result.stderr}")


def must(command, what, **options):
    result = run(command, **options)
    expect(result.returncode == 0, what, result)
    return result.stdout


def theirs(ours, key, public, file, flags):
    """minisign signs; we check."""
    signature = file.with_suffix(".theirs")
    must(["minisign", "-S", *flags, "-s", key, "-m", file, "-x", signature, "-t", "step:7"],
         "minisign does not sign")
    comment = must([ours, "check", public, file, signature], "we refuse what minisign signed")
    assert comment == "step:7", comment
    file.write_bytes(file.read_bytes() + b"!")
    changed = run([ours, "check", public, file, signature])
    expect(changed.returncode == 1 and changed.stdout.startswith("RM104 "),
           "we accept another content", changed)
    file.write_bytes(file.read_bytes()[:-1])


def ours_to_them(ours, key, public, file, comment, password=()):
    """We sign; minisign checks."""
    signature = file.with_suffix(".ours")
    signature.write_text(must([ours, "sign", key, file, comment, *password], "we do not sign"),
                         encoding="utf-8")
    check = ["minisign", "-V", "-H", "-p", public, "-m", file, "-x", signature]
    must(check, "minisign refuses what we signed")
    assert must([*check, "-Q"], "minisign refuses").rstrip("\n") == comment
    file.write_bytes(file.read_bytes() + b"!")
    changed = run(check)
    expect(changed.returncode != 0, "minisign accepts another content", changed)
    file.write_bytes(file.read_bytes()[:-1])


def main(ours):
    with tempfile.TemporaryDirectory() as directory:
        here = Path(directory)
        key, public = here / "plain.key", here / "plain.pub"
        must(["minisign", "-G", "-W", "-s", key, "-p", public], "minisign makes no key")
        other_key, other = here / "other.key", here / "other.pub"
        must(["minisign", "-G", "-W", "-s", other_key, "-p", other], "minisign makes no key")
        for name, content in CONTENTS.items():
            file = here / name
            file.write_bytes(content)
            for flags in ([], ["-l"]):
                theirs(ours, key, public, file, flags)
            for comment in COMMENTS:
                ours_to_them(ours, key, public, file, comment)

        file = here / "short"
        wrong = run([ours, "check", other, file, here / "short.ours"])
        expect(wrong.returncode == 1 and wrong.stdout.startswith("RM612 "),
               "we accept the signature of another key", wrong)

        secret = here / "encrypted.key"
        must(["minisign", "-G", "-s", secret, "-p", here / "encrypted.pub"],
             "minisign makes no encrypted key", input=f"{PASSWORD}\n{PASSWORD}\n")
        ours_to_them(ours, secret, here / "encrypted.pub", file, "step:8", [PASSWORD])
        wrong = run([ours, "sign", secret, file, "step:8", PASSWORD + "s"])
        expect(wrong.returncode == 1 and "the password is wrong" in wrong.stdout,
               "we accept a wrong password", wrong)

        # A key whose password was taken away has a checksum, which one made without has not.
        must(["minisign", "-C", "-W", "-s", secret], "minisign keeps the password",
             input=f"{PASSWORD}\n")
        ours_to_them(ours, secret, here / "encrypted.pub", file, "step:9")
    print("signatures of both are accepted by both")


if __name__ == "__main__":
    main(*sys.argv[1:])
