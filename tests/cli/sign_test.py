#!/usr/bin/env python3
"""Signed checkpoints: what --sign writes minisign accepts, and verify --key finds every change.

    sign_test.py PROGRAM FIXTURES

Needs minisign.
"""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PASSWORD = "correct horse"
TENSOR = "model.layers.3.self_attn.q_proj.weight"


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False, **options)


def must(*command, code=0, **options):
    done = run(*command, **options)
    if done.returncode != code:
        sys.exit(f"exit {done.returncode}, expected {code}: {done.args}\n{done.stdout}{done.stderr}")
    return done


def expect(condition, what, shown=""):
    if not condition:
        sys.exit(f"{what}\n{shown}")


def crc64(data, state):
    """CRC-64/XZ without its last inversion; linear in `data` where `state` is 0."""
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = (state >> 1) ^ (0xC96C5795D7870F42 if state & 1 else 0)
    return state


def commit(checkpoint):
    """Makes COMMIT fit the manifest, as anybody can."""
    text = (checkpoint / "manifest.json").read_bytes()
    digest = crc64(text, 2**64 - 1) ^ (2**64 - 1)
    (checkpoint / "COMMIT").write_text(f"crc64xz:{digest:016x} {len(text)}\n", encoding="ascii")


def place_of(checkpoint, model):
    """A shard, and where in it the first row of TENSOR begins."""
    data = (model / "model.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    begin = json.loads(data[8:8 + size])[TENSOR]["data_offsets"][0] + 8 + size
    row = data[begin:begin + 64]
    for shard in sorted(checkpoint.glob("shard-*")):
        at = shard.read_bytes().find(row)
        if at >= 0:
            return shard, at
    return sys.exit(f"no shard holds {TENSOR}")


def id_of(public):
    """minisign leaves out leading zeros."""
    return re.search("public key ([0-9A-F]+)", public.read_text()).group(1).rjust(16, "0")


def change(file, at, delta):
    data = bytearray(file.read_bytes())
    for i, byte in enumerate(delta):
        data[at + i] ^= byte
    file.write_bytes(data)


class Bench:
    def __init__(self, program, fixtures, here):
        self.program = str(Path(program).resolve())
        self.model = Path(fixtures, "llama-gqa").resolve()
        self.here = here
        self.key, self.public = self.new_key("key")
        self.other_key, self.other = self.new_key("other")
        self.id, self.other_id = id_of(self.public), id_of(self.other)
        self.signed = here / "signed"
        self.convert(self.signed, self.key)

    def new_key(self, name):
        key, public = self.here / f"{name}.key", self.here / f"{name}.pub"
        must("minisign", "-G", "-W", "-s", key, "-p", public)
        return key, public

    def convert(self, destination, key, **options):
        return must(self.program, "convert", self.model, destination, "--mesh", "tp=2,pp=2",
                    "--sign", key, **options)

    def copy(self):
        copy = self.here / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        return Path(shutil.copytree(self.signed, copy))

    def verify(self, checkpoint, *more, key=None, code=0):
        key = self.public if key is None else key
        return must(self.program, "verify", checkpoint, "--key", key, *more, code=code)

    def refused(self, checkpoint, *words):
        """With --key, for a reason that the output says; and by whichever level reads so much."""
        text = self.verify(checkpoint, code=1).stdout
        for word in words:
            expect(word in text, f"verify --key does not say {word!r}:", text)
        return text

    def accepted_without_key(self, checkpoint):
        must(self.program, "verify", checkpoint, "--level", "deep")


def what_is_signed(bench):
    must("minisign", "-V", "-p", bench.public, "-m", bench.signed / "manifest.json")
    manifest = json.loads((bench.signed / "manifest.json").read_text())
    files = len(manifest["files"]) + len(manifest["side"])
    comment = must("minisign", "-V", "-Q", "-p", bench.public, "-m",
                   bench.signed / "manifest.json").stdout
    expect(comment == f"save {manifest['save_id']}\n", "the trusted comment is not the save id",
           comment)
    line = f"  signed by {bench.id}: manifest and {files} files\n"
    for level in ("full", "deep"):
        text = bench.verify(bench.signed, "--level", level).stdout
        expect(line in text and "RM108" not in text, f"verify --key --level {level} says:", text)
    for level in ("header", "quick"):
        text = bench.verify(bench.signed, "--level", level).stdout
        expect("files were not compared with the signature" in text, "a level says too much:", text)

    base64 = bench.public.read_text().splitlines()[1]
    document = json.loads(bench.verify(bench.signed, "--json", key=base64).stdout)
    expect(document["signature"] == {"key_id": bench.id, "files_checked": files}, "JSON says",
           document["signature"])
    document = json.loads(must(bench.program, "verify", bench.signed, "--json").stdout)
    expect(document["signature"] is None, "JSON without --key says", document["signature"])

    text = bench.verify(bench.signed, "--against", bench.model).stdout
    expect(line in text, "verify --key --against says:", text)


def the_same_bytes_twice(bench):
    again = bench.here / "again"
    bench.convert(again, bench.key)
    for file in sorted(path for path in bench.signed.rglob("*") if path.is_file()):
        name = file.relative_to(bench.signed)
        expect((again / name).read_bytes() == file.read_bytes(), f"{name} differs between two runs")
    resharded = bench.here / "resharded"
    must(bench.program, "reshard", bench.signed, resharded, "--mesh", "tp=4", "--sign",
         bench.other_key, "--read-back", "--compress", "zstd")
    must("minisign", "-V", "-p", bench.other, "-m", resharded / "manifest.json")
    bench.verify(resharded, key=bench.other)


def changed_bytes(bench):
    copy = bench.copy()
    shard, at = place_of(copy, bench.model)
    change(shard, at, b"\1")
    text = bench.refused(copy, "RM207", shard.name, f"signed by {bench.id}: manifest and ")
    expect("RM104" not in text, "what the block says is said twice:", text)

    copy = bench.copy()
    change(next(copy.glob("side/config.json")), 5, b"\1")
    bench.refused(copy, "RM207", "side/config.json")

    copy = bench.copy()
    shard, _ = place_of(copy, bench.model)
    shard.unlink()
    bench.refused(copy, "RM203", shard.name)


def forged_bytes(bench):
    """What three bytes do to a CRC-64 the next eight undo; only the signature notices."""
    copy = bench.copy()
    shard, at = place_of(copy, bench.model)
    delta = b"\1\2\3"
    before = shard.read_bytes()
    change(shard, at, delta + crc64(delta, 0).to_bytes(8, "little"))
    expect(shard.read_bytes() != before, "nothing was forged")
    bench.accepted_without_key(copy)
    roots = json.loads((copy / "manifest.json").read_text())["blake2b"]["files"]
    bench.refused(copy, "RM104", shard.name, roots[0], "is not the file that was signed")
    document = json.loads(bench.verify(copy, "--json", code=1).stdout)
    expect(document["findings"][0]["expected"] in roots, "the finding has no hash", document)
    text = must(bench.program, "verify", copy, "--key", bench.public, "--against", bench.signed,
                code=1).stdout
    expect("RM104" in text, "--against hides it:", text)
    must(bench.program, "verify", bench.signed, "--key", bench.public, "--against", copy)


def changed_manifests(bench):
    copy = bench.copy()
    (copy / "manifest.json.minisig").unlink()
    bench.accepted_without_key(copy)
    bench.refused(copy, "RM611")
    bench.verify(copy, "--level", "header", code=1)

    text = bench.verify(bench.signed, key=bench.other, code=1).stdout
    expect("RM612" in text and bench.id in text and bench.other_id in text, "another key:", text)

    copy = bench.copy()
    manifest = copy / "manifest.json"
    text = manifest.read_text()
    changed = text.replace('"name":"model.safetensors"', '"name":"hodel.safetensors"')
    expect(changed != text, "the manifest was not changed")
    manifest.write_text(changed)
    commit(copy)
    bench.accepted_without_key(copy)
    text = bench.refused(copy, "RM104", "manifest.json.minisig")
    expect("signed by" not in text, "it is called signed:", text)

    # As a careless author might: the manifest alone is signed.
    copy = bench.copy()
    manifest = copy / "manifest.json"
    text = re.sub(r'"blake2b":\{.*?\}', '"blake2b":null', manifest.read_text(), count=1)
    manifest.write_text(text)
    commit(copy)
    must("minisign", "-S", "-s", bench.key, "-m", manifest)
    must("minisign", "-V", "-p", bench.public, "-m", manifest)
    bench.accepted_without_key(copy)
    bench.refused(copy, "RM611", "not signed")


def usage(bench):
    new = bench.here / "new"
    done = must(bench.program, "convert", bench.signed, new, "--to", "hf", "--sign", bench.key,
                code=2)
    expect("has no manifest" in done.stderr, "hf cannot be signed because:", done.stderr)
    must(bench.program, "convert", bench.model, new, "--sign", bench.public, code=2)
    must(bench.program, "convert", bench.model, new, "--sign", bench.here / "none", code=4)
    expect(not list(bench.here.glob("*new*")), "something was created before the key was read")

    done = bench.verify(bench.model, code=6)
    expect("is hf" in done.stderr, "of hf there is no signature because:", done.stderr)
    bench.verify(bench.here / "none", code=4)
    for wrong in ("nowhere.pub", "RWnokey", bench.key):
        bench.verify(bench.signed, key=wrong, code=2)


def on_a_terminal(command, answer):
    """What a command shows on its terminal and its exit code; it is asked once."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(command[0], [str(word) for word in command])
    shown = b""
    try:
        while chunk := os.read(terminal, 4096):
            shown += chunk
            if b"Password of" in shown and answer:
                time.sleep(0.3)
                os.write(terminal, answer)
                answer = b""
    except OSError:
        pass  # the other end was closed
    return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def passwords(bench):
    key, public = bench.here / "locked.key", bench.here / "locked.pub"
    must("minisign", "-G", "-s", key, "-p", public, input=f"{PASSWORD}\n{PASSWORD}\n")
    new = bench.here / "locked"
    plain = {name: value for name, value in os.environ.items() if name != "REMESH_KEY_PASSWORD"}
    command = [bench.program, "convert", bench.model, new, "--sign", key]

    done = must(*command, code=2, env=plain, start_new_session=True)
    expect("REMESH_KEY_PASSWORD" in done.stderr, "without a terminal it says:", done.stderr)
    done = must(*command, code=2, env={**plain, "REMESH_KEY_PASSWORD": "wrong"})
    expect("password is wrong" in done.stderr, "of a wrong password it says:", done.stderr)
    expect(not list(bench.here.glob("*locked.remesh*")) and not new.exists(), "it left something")

    must(*command, env={**plain, "REMESH_KEY_PASSWORD": PASSWORD})
    bench.verify(new, key=public)
    shutil.rmtree(new)
    os.environ.pop("REMESH_KEY_PASSWORD", None)
    shown, code = on_a_terminal(command, f"{PASSWORD}\n".encode())
    expect(code == 0, f"asked on a terminal it ends with {code}:", shown)
    expect("Password of" in shown and PASSWORD not in shown, "the terminal shows:", shown)
    bench.verify(new, key=public)
    shown, code = on_a_terminal([*command[:3], bench.here / "stopped", *command[4:]], b"\x03")
    expect(code == 130, f"stopped while it asks it ends with {code}:", shown)


TESTS = [what_is_signed, the_same_bytes_twice, changed_bytes, forged_bytes, changed_manifests, usage,
         passwords]


def main(program, fixtures):
    with tempfile.TemporaryDirectory(prefix="remesh-sign-") as here:
        bench = Bench(program, fixtures, Path(here))
        for test in TESTS:
            test(bench)
    print(f"{len(TESTS)} groups of tests passed")


if __name__ == "__main__":
    main(*sys.argv[1:])
