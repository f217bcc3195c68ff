"""The reference reader and the program on what each of them, or the page alone, writes.

    reference_program_test.py PROGRAM SOURCE_DIR

Needs python3-jsonschema.
"""

import json
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import jsonschema

PROGRAM, SOURCE = (Path(path).resolve() for path in sys.argv[1:3])
del sys.argv[1:3]
FIXTURES = SOURCE / "fixtures"
sys.path.insert(0, str(FIXTURES / "make"))

from reference_crc import crc_text  # noqa: E402
from reference_basics import Defect  # noqa: E402
from reference_json import canonical, parse_json  # noqa: E402
from reference_layout import Layout  # noqa: E402
from reference_layouts import cut, deal_out, is_whole, random_case  # noqa: E402
from reference_proof import Party, Prover, read_proof  # noqa: E402
from reference_view import check_view  # noqa: E402
from reference_writer import random_data, write_checkpoint  # noqa: E402

READER = FIXTURES / "make/reference_reader.py"
# name, source (a fixture or an earlier job), verb, options
JOBS = [
    ("stages", "llama-gqa", "convert", "--mesh tp=2,pp=2"),
    ("experts", "moe-state", "convert", "--mesh tp=2,dp=4,ep=4,etp=2 --zero 1"),
    ("ranges", "experts", "reshard", "--mesh tp=2,dp=4,ep=4,etp=2 --zero 3 --shard-rule flat"),
    (
        "chunks",
        "ranges",
        "reshard",
        "--mesh tp=1,dp=3,pp=2 --zero 3 --shard-rule chunk --read-back",
    ),
    ("copies", "stages", "reshard", "--mesh tp=2,dp=3 --copies 2"),
    ("replicas", "experts", "reshard", "--mesh tp=4,dp=2 --zero 1 --copies 2"),
    (
        "some",
        "moe-state",
        "convert",
        "--mesh tp=2 --dtype f16 --exclude *gate.weight --weights-only",
    ),
    ("wide", "some", "reshard", "--mesh pp=5 --dtype f64 --exclude *norm*"),
    ("narrow", "wide", "reshard", "--mesh dp=2 --dtype bf16"),
    ("half", "llama-gqa", "convert", "--to hf --dtype f16 --shard-size 100KB"),
    ("hf", "ranges", "convert", "--to hf"),
]


def run_jobs(directory):
    """Runs all jobs; returns {name: (source, target, certificate)}."""
    made = {}
    for name, source, verb, options in JOBS:
        begin = made[source][1] if source in made else FIXTURES / source
        target, proof = directory / name, directory / f"{name}.proof"
        command = [PROGRAM, verb, begin, target, "--proof", proof, "-q", *options.split()]
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
        made[name] = (begin, target, proof)
    return made


def sealed(proof):
    """The text of a certificate whose own digest fits."""
    raw = canonical({key: value for key, value in proof.items() if key != "this_digest"})[:-1]
    return raw + b',"this_digest":"' + crc_text(raw).encode() + b'"}'


def schema(name):
    """A schema that is one itself."""
    parsed = json.loads((SOURCE / "format" / name).read_text())
    jsonschema.Draft7Validator.check_schema(parsed)
    return jsonschema.Draft7Validator(parsed)


class WhatTheProgramWrites(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="remesh-reference-")
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.jobs = run_jobs(Path(cls.scratch.name))
        cls.parties = {}

    def party(self, path):
        """An end of a certificate; each is read once."""
        if path not in self.parties:
            self.parties[path] = Party(str(path))
        return self.parties[path]

    def wrong(self, name, proof_path):
        source, target, _ = self.jobs[name]
        prover = Prover(self.party(source), self.party(target), read_proof(str(proof_path)))
        prover.check()
        return prover.wrong

    def test_checkpoints_are_read(self):
        for name, (_, target, proof) in self.jobs.items():
            if not (target / "COMMIT").exists():
                continue
            with self.subTest(name):
                checkpoint = self.party(target).checkpoint  # read whole by now, but for the view
                self.assertGreater(len(checkpoint.shards), 0)
                for shard in checkpoint.shards:
                    check_view(shard, checkpoint.manifest)
                self.assertEqual((target / "proof.json").read_bytes(), proof.read_bytes())

    def test_texts_are_canonical(self):
        for name, (_, target, proof) in self.jobs.items():
            with self.subTest(name):
                manifest = target / "manifest.json"
                for path in [manifest] if manifest.exists() else []:
                    raw = path.read_bytes()
                    self.assertEqual(canonical(parse_json(raw, path.name)), raw)
                raw = proof.read_bytes()
                self.assertEqual(sealed(parse_json(raw, proof.name)), raw)

    def test_certificates_are_proved(self):
        casts = dropped = rounded = 0
        for name, (_, _, path) in self.jobs.items():
            with self.subTest(name):
                self.assertEqual(self.wrong(name, path), [])
                proof = json.loads(path.read_text())
                casts += sum(t["cast"] is not None for t in proof["tensors"])
                rounded += sum(t["cast"]["rounded"] > 0 for t in proof["tensors"] if t["cast"])
                dropped += len(proof["dropped"])
        self.assertGreater(min(casts, rounded, dropped), 0, (casts, rounded, dropped))

    def test_the_command_proves(self):
        source, target, proof = self.jobs["half"]
        command = [sys.executable, "-B", READER, "--prove", source, target, "--proof", proof]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(
            done.stdout, r"^proved: 66 tensors, 298048 elements, 66 cast, 0 dropped\n$"
        )

    def test_spoilt_certificates_are_refused(self):
        zero = "crc64xz:" + "0" * 16
        spoils = {
            "covered.elements": lambda p: p["covered"].update(elements=1),
            "covered.source": lambda p: p["covered"].update(source=1),
            "covered.target": lambda p: p["covered"].update(target=1),
            "dropped 'x'": lambda p: p["dropped"].append({**p["dropped"][0], "name": "x"}),
            "dropped 'trainer_state.json'": lambda p: p["dropped"].pop(),
            "entries of dropped": lambda p: p["dropped"].append(p["dropped"][0]),
            "dropped 'model.layers.0": lambda p: p["dropped"][0].update(bytes=2),
            "padded": lambda p: p["padded"].append({}),
            "source.format": lambda p: p["source"].update(format="remesh"),
            "source.mesh": lambda p: p["source"]["mesh"].update(virtual_stages=2),
            "source.save_id": lambda p: p["source"].update(save_id="0" * 32),
            "source.tensors": lambda p: p["source"].update(tensors=1),
            "target.format": lambda p: p["target"].update(format="hf"),
            "target.manifest": lambda p: p["target"].update(manifest=zero),
            "target.mesh": lambda p: p["target"]["mesh"]["axes"].update(tp=3),
            "target.save_id": lambda p: p["target"].update(save_id="0" * 32),
            "target.tensors": lambda p: p["target"].update(tensors=1),
            "number of tensors": lambda p: p["tensors"].pop(),
            "name of tensor 0": lambda p: p["tensors"].reverse(),
            "source digest": lambda p: p["tensors"][0].update(source=zero),
            "target digest": lambda p: p["tensors"][0].update(target=zero),
            "values changed": lambda p: p["tensors"][0]["cast"].update(rounded=10**6),
            "cast bf16 to f32": lambda p: p["tensors"][0]["cast"].update(to="f32"),
            "dtypes of source and target": lambda p: p["tensors"][0].update(cast=None),
        }
        spoilt = Path(self.scratch.name) / "spoilt.proof"
        for expected, spoil in spoils.items():
            with self.subTest(expected):
                proof = json.loads(self.jobs["some"][2].read_text())
                spoil(proof)
                spoilt.write_bytes(sealed(proof))
                self.assertIn(expected, "\n".join(self.wrong("some", spoilt)))

    def test_damage_to_a_certificate_is_seen(self):
        spoilt = Path(self.scratch.name) / "spoilt.proof"
        raw = self.jobs["stages"][2].read_bytes()
        for at in (1, len(raw) // 2, len(raw) - 60, len(raw) - 10):
            with self.subTest(at=at):
                spoilt.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
                self.assertRaisesRegex(Defect, "digest", read_proof, str(spoilt))

    def test_schemas_hold(self):
        manifest, proof = schema("remesh.manifest.1.json"), schema("remesh.proof.1.json")
        manifests = [*FIXTURES.glob("golden/v1/*/manifest.json")]
        manifests += Path(self.scratch.name).glob("*/manifest.json")
        proofs = [*FIXTURES.glob("golden/v1/*/proof.json")]
        proofs += [path for _, _, path in self.jobs.values()]
        self.assertGreater(min(len(manifests), len(proofs)), 8)
        for judge, paths in ((manifest, manifests), (proof, proofs)):
            for path in paths:
                with self.subTest(str(path)):
                    document = json.loads(path.read_text())
                    judge.validate(document)
            document = json.loads(paths[0].read_text())
            for key in document:
                without = {k: v for k, v in document.items() if k != key}
                self.assertFalse(judge.is_valid(without), key)
            self.assertFalse(judge.is_valid({**document, "more": 1}))


class WhatThePageWrites(unittest.TestCase):
    """The program reads checkpoints that were written from the page alone."""

    SEEDS = 40

    def test_random_layouts(self):
        read = 0
        with tempfile.TemporaryDirectory(prefix="remesh-reference-") as scratch:
            for seed in range(self.SEEDS):
                rng, folder = random.Random(seed), f"{scratch}/{seed}"
                mesh, layout, tensors = random_case(rng)
                try:
                    pieces = Layout({"mesh": mesh, "layout": layout, "tensors": tensors}).held()
                except Defect:
                    continue  # impossible
                if not all(is_whole(t, p) and cut(p) == p for t, p in zip(tensors, pieces)):
                    continue  # holes, or boxes that each writer cuts in its own way
                data = [random_data(t, rng) for t in tensors]
                deal = deal_out(rng, tensors, pieces, 0)
                write_checkpoint(folder, mesh, layout, tensors, data, deal, {"a.json": b"{}"})
                command = [PROGRAM, "verify", folder, "-q"]
                done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
                with self.subTest(seed=seed):
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                read += 1
        self.assertGreater(read, self.SEEDS // 2)


if __name__ == "__main__":
    unittest.main()
