#!/usr/bin/env python3
"""Checks what every verb prints with --json against the schema files that ship.

    json_schema_test.py PROGRAM FIXTURES SCHEMA_DIR

Needs python3-jsonschema and minisign.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema

# (schema's verb, exit code, arguments). {..} are paths, made by `make_inputs`.
ROWS = [
    ("inspect", 0, "inspect {ckpt}"),
    ("inspect", 0, "inspect {ckpt} -v"),
    ("inspect", 0, "{hf} *.norm.weight"),
    ("inspect", 1, "inspect {hf} nothing*"),
    ("inspect", 0, "inspect {several}"),
    ("inspect", 0, "inspect {steps}"),
    ("latest", 0, "latest {steps}"),
    ("latest", 0, "latest {several} --level header"),
    ("latest", 1, "latest {unfinished}"),
    ("error", 4, "latest {directory}"),
    ("plan", 0, "plan {ckpt} --mesh tp=4"),
    ("plan", 0, "plan {hf} --mesh tp=2,pp=2"),
    ("plan", 1, "plan {hf} --mesh tp=3"),
    ("plan", 0, "reshard {ckpt} {new} --mesh tp=4 --dry-run"),
    ("reshard", 0, "reshard {ckpt} {new} --mesh tp=4"),
    ("reshard", 0, "reshard {ckpt} {new} --mesh dp=2,tp=2 --read-back --copies 2"),
    ("convert", 0, "convert {hf} {new} --mesh pp=7"),
    ("convert", 0, "convert {ckpt} {new} --to hf --read-back"),
    ("verify", 0, "verify {ckpt}"),
    ("verify", 0, "verify {hf} --level header"),
    ("verify", 0, "verify {ckpt} --level deep"),
    ("verify", 0, "verify {ckpt} --subset 2/3"),
    ("error", 2, "verify {ckpt} --subset 4/3"),
    ("verify", 0, "verify {ckpt} --against {hf} --level quick"),
    ("verify", 0, "verify {ckpt} --previous {hf}"),
    ("verify", 0, "verify {ckpt} --key {key}.pub"),
    ("verify", 0, "verify {ckpt} --key {key}.pub --level header"),
    ("verify", 1, "verify {cut} --key {key}.pub"),
    ("verify", 1, "verify {cut}"),
    ("verify", 0, "verify {noted} --config {config} --ignore RM541 --fail-on warn"),
    ("error", 2, "verify {ckpt} --ignore RM601"),
    ("diff", 0, "diff {ckpt} {hf} --ignore RM311"),
    ("diff", 0, "diff {ckpt} {hf}"),
    ("diff", 1, "diff {ckpt} {changed}"),
    ("diff", 0, "diff {ckpt} {changed} --max-ulps 1000 --atol 1e9 --include *norm*"),
    ("diff", 1, "diff {state} {ckpt} --limit 3"),
    ("diff", 1, "diff {ckpt} {nan}"),
    ("diff", 0, "diff {ckpt} {changed} --ignore RM311"),
    ("error", 5, "diff {cut} {ckpt}"),
    ("fingerprint", 0, "fingerprint {ckpt}"),
    ("fingerprint", 0, "fingerprint {ckpt} --algorithm blake2b"),
    ("fingerprint", 0, "fingerprint {ckpt} -o {new}"),
    ("fingerprint", 0, "fingerprint {hf} --check {lock}"),
    ("fingerprint", 1, "fingerprint {hf} --check {wrong_lock}"),
    ("fingerprint", 1, "fingerprint {changed} --check {lock}"),
    ("fingerprint", 1, "fingerprint {cut} --check {lock}"),
    ("fingerprint", 0, "fingerprint {hf} --check {wrong_lock} --ignore RM310 --ignore RM302"),
    ("error", 2, "fingerprint {hf} --ignore RM310"),
    ("seal", 0, "seal {own}"),
    ("seal", 0, "seal {hf} -o {new} --sign {key}"),
    ("verify", 0, "verify {own}"),
    ("verify", 1, "verify {own} --seal {lock}"),
    ("inspect", 0, "inspect {own}"),
    ("error", 10, "seal {own}"),
    ("error", 6, "seal {ckpt}"),
    ("repair", 0, "repair {ckpt} {new}"),
    ("repair", 0, "repair {flipped} {new}"),
    ("repair", 5, "repair {cut} {new}"),
    ("repair", 0, "repair {flipped} --dry-run"),
    ("error", 6, "repair {hf} {new}"),
    ("bench", 0, "bench io {directory} --size 4MiB"),
    ("plan", 0, "plan {ckpt} --mesh tp=4 --io {rates}"),
    ("reshard", 0, "reshard {ckpt} {new} --mesh tp=4 --io {rates}"),
    ("env", 0, "env"),
    ("explain", 0, "explain RM202"),
    ("explain", 0, "explain --list"),
    ("completion", 0, "completion bash"),
    ("completion", 0, "completion zsh"),
    ("completion", 0, "completion fish"),
    ("error", 2, "reshard {hf} {new} --mesh tp=2"),
    ("error", 2, "reshard {ckpt} {new} --mehs tp=2"),
    ("error", 4, "inspect {new}"),
    ("error", 4, "verify {new}"),
    ("error", 5, "fingerprint {cut}"),
    ("error", 6, "inspect {hf} --from dcp"),
    ("error", 2, "plan {ckpt} --mesh tp=4 --io {lock}"),
    ("error", 7, "bench io {new}"),
    ("error", 9, "verify {ckpt} --memory 1MiB"),
    ("error", 10, "convert {hf} {ckpt}"),
]


def make_inputs(program, fixtures, scratch):
    def remesh(*arguments):
        subprocess.run([program, *map(str, arguments), "-q"], check=True, stdout=subprocess.DEVNULL)

    places = {"hf": Path(fixtures, "llama-gqa").resolve()}
    for name in ("ckpt", "several", "cut", "lock", "wrong_lock"):
        places[name] = scratch / name
    places["key"] = scratch / "key"
    subprocess.run(["minisign", "-G", "-W", "-s", places["key"], "-p", f"{places['key']}.pub"],
                   check=True, stdout=subprocess.DEVNULL)
    remesh("convert", places["hf"], places["ckpt"], "--mesh", "tp=2,pp=2", "--sign", places["key"])
    shutil.copytree(places["ckpt"], places["several"] / "one")
    shutil.copytree(places["hf"], places["several"] / "two")
    places["steps"] = make_run(scratch / "steps", places["ckpt"])
    places["unfinished"] = scratch / "unfinished"
    places["unfinished"].joinpath(".step-1.remesh-0123456789abcdef").mkdir(parents=True)
    places["own"] = scratch / "own"
    shutil.copytree(places["hf"], places["own"])
    shutil.copytree(places["ckpt"], places["cut"])
    shard = sorted(places["cut"].glob("shard-*"))[0]
    shard.write_bytes(shard.read_bytes()[:-1000])
    places["flipped"] = scratch / "flipped"
    shutil.copytree(places["ckpt"], places["flipped"])
    shard = sorted(places["flipped"].glob("shard-*"))[0]
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    remesh("fingerprint", places["ckpt"], "-o", places["lock"])
    places["state"] = Path(fixtures, "llama-state").resolve()
    places["changed"] = scratch / "changed"
    shutil.copytree(places["hf"], places["changed"])
    weights = places["changed"] / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    places["nan"] = scratch / "nan"
    shutil.copytree(places["hf"], places["nan"])
    (places["nan"] / "model.safetensors").write_bytes(content[:-2] + b"\xc0\x7f")
    lines = places["lock"].read_text().splitlines()
    places["wrong_lock"].write_text("\n".join(lines[:-1]) + "\n")
    places["noted"] = scratch / "noted"
    shutil.copytree(places["ckpt"], places["noted"])
    (places["noted"] / "note").touch()
    places["config"] = scratch / "remesh.toml"
    places["config"].write_text('[[ignore]]\nid = "RM108"\nglob = "note"\nreason = "ours"\nexpires = 9999-12-31\n'
                                '[[ignore]]\nid = "RM210"\nreason = "ours"\nexpires = 2020-01-01\n')
    places["directory"] = scratch / "directory"
    places["directory"].mkdir()
    places["rates"] = scratch / "rates"
    with open(places["rates"], "wb") as file:
        subprocess.run([program, "bench", "io", scratch, "--size", "4MiB", "--json", "-q"], check=True, stdout=file)
    return places


def make_run(run, ckpt):
    """A run in which all that can be said of one is said."""
    shutil.copytree(ckpt, run / "step-9")
    shutil.copytree(ckpt, run / "step-10")
    shutil.copytree(ckpt, run / "step-10.copy")
    shutil.copytree(ckpt, run / "step-11")
    (run / "step-11" / "COMMIT").unlink()
    (run / "step-12").mkdir()
    (run / ".step-13.remesh-0123456789abcdef").mkdir()
    (run / "latest").write_text("step-9")
    (run / "last").write_text("")
    return run


def problem_of(program, row, places, schemas, new):
    verb, code, text = row
    paths = {**places, "new": new}
    arguments = [argument.format(**paths) for argument in text.split()] + ["--json"]
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode != code:
        return f"exit {done.returncode}, expected {code}\n{done.stderr}"
    try:
        document = json.loads(done.stdout)
        jsonschema.Draft7Validator.check_schema(schemas[verb])
        jsonschema.validate(document, schemas[verb], cls=validator())
    except (ValueError, jsonschema.ValidationError) as error:
        return str(error)
    if document["schema"] != f"remesh.{verb}/1":
        return f"schema {document['schema']}, expected remesh.{verb}/1"
    return None


def validator():
    return getattr(jsonschema, "Draft202012Validator", jsonschema.Draft7Validator)


def every_verb_has_a_row(program, schemas):
    help_text = subprocess.run([program, "--help"], capture_output=True, text=True).stdout
    verbs = {line.split()[0] for line in help_text.partition("Subcommands:")[2].splitlines()
             if line.startswith("  ") and line.split()}
    rows = {verb for verb, _, _ in ROWS}
    verbs.discard("remesh")
    verbs = {verb for verb in verbs if verb.isalpha()}
    return (verbs | {"error"}) == rows == set(schemas)


def main(program, fixtures, schema_dir):
    program = str(Path(program).resolve())
    schemas = {path.name.split(".")[1]: json.loads(path.read_text())
               for path in Path(schema_dir).glob("remesh.*.json")}
    if not every_verb_has_a_row(program, schemas):
        print("FAILED   verbs, rows of this test and schema files are not the same set")
        return 1
    failures = 0
    with tempfile.TemporaryDirectory(prefix="remesh-json-") as scratch:
        scratch = Path(scratch)
        places = make_inputs(program, fixtures, scratch)
        for number, row in enumerate(ROWS):
            problem = problem_of(program, row, places, schemas, scratch / f"new{number}")
            if problem:
                failures += 1
                print(f"FAILED   remesh {row[2]}\n{problem}")
    print(f"{len(ROWS) - failures} of {len(ROWS)} documents fit their schemas")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
