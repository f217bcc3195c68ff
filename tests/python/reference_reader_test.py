"""Tests the reference reader with checkpoints written by the page alone, whole and damaged ones.

    reference_reader_test.py
"""

import contextlib
import io
import json
import math
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from fractions import Fraction
from pathlib import Path

import numpy as np

from reference_defects import base, defects
from reference_layouts import Elements, cut, deal_out, is_whole, random_case
from reference_writer import (
    crc64,
    crc_text,
    flip,
    random_data,
    reseal,
    take,
    text,
    write_checkpoint,
)
import reference_reader
from reference_basics import Defect
from reference_checkpoint import Checkpoint
from reference_layout import Layout
from reference_proof import NO_MESH, from_float64

READER = Path(__file__).resolve().parents[2] / "fixtures/make/reference_reader.py"


def run(*arguments):
    """Runs the reader within this process; returns (exit, what it printed)."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        status = reference_reader.main(list(arguments))
    return status, out.getvalue()


def save_safetensors(path, tensors):
    names = {"f32": "F32", "bf16": "BF16", "f16": "F16", "u8": "U8", "f64": "F64"}
    header, body = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {
            "dtype": names[dtype],
            "shape": shape,
            "data_offsets": [len(body), len(body) + len(content)],
        }
        body += content
    raw = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(raw)) + raw + body)


def rounded(value, bits, bias, mantissa):
    """One value rounded to nearest even by exact arithmetic, as bits; for small floats."""
    from fractions import Fraction

    sign = 1 if math.copysign(1, value) < 0 else 0
    if math.isinf(value):
        return sign << bits - 1 | ((1 << bits - 1 - mantissa) - 1) << mantissa
    exact, best = abs(Fraction(value)), None
    low, high = 0, ((1 << bits - 1 - mantissa) - 1) << mantissa

    def worth(code):
        e, m = code >> mantissa, code & (1 << mantissa) - 1
        return (
            Fraction(m or 0) * Fraction(2) ** (1 - bias - mantissa)
            if e == 0
            else Fraction((1 << mantissa) + m) * Fraction(2) ** (e - bias - mantissa)
        )

    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if worth(middle) <= exact else (low, middle)
    under, over = exact - worth(low), worth(high) - exact
    best = low if under < over or under == over and low % 2 == 0 else high
    return sign << bits - 1 | best


def bit_by_bit(data):
    """The CRC as its polynomial says."""
    register = 2**64 - 1
    for value in data:
        register ^= value
        for _ in range(8):
            register = register >> 1 ^ (0xC96C5795D7870F42 if register & 1 else 0)
    return register ^ 2**64 - 1


class Scratch(unittest.TestCase):
    """A test with a directory of its own."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="remesh-reference-")
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name
        self.folder = os.path.join(scratch.name, "checkpoint")


class Crc(unittest.TestCase):
    def test_is_that_of_the_polynomial(self):
        self.assertEqual(crc64(b"123456789"), 0x995DC9BBDF1939FA)
        self.assertEqual(crc64(b""), 0)
        rng = random.Random(1)
        for size in (1, 9, 96, 97, 768, 1001, 40_003):
            data = rng.randbytes(size)
            self.assertEqual(crc64(data), bit_by_bit(data), size)

    def test_of_many_parts_is_linear(self):
        size = 5 * 2**20 + 3
        one, two = (np.random.default_rng(i).integers(0, 256, size, np.uint8) for i in (1, 2))
        zeros = np.zeros(size, np.uint8)
        self.assertEqual(crc64(one ^ two), crc64(one) ^ crc64(two) ^ crc64(zeros))


class Layouts(Scratch):
    """Random layouts, against their element-wise form, and whole checkpoints of some of them."""

    SEEDS, WRITTEN = 200, 20

    def test_what_ranks_hold(self):
        read = cuts = 0
        for seed in range(self.SEEDS):
            with self.subTest(seed=seed):
                rng = random.Random(seed)
                mesh, layout, tensors = random_case(rng)
                try:
                    held = Layout({"mesh": mesh, "layout": layout, "tensors": tensors}).held()
                except Defect as defect:
                    self.assertRegex(str(defect), "border|different lines")
                    continue
                self.compare(Elements(mesh, layout, tensors), tensors, held)
                pieces = [cut(boxes) for boxes in held]
                whole = all(is_whole(t, p) for t, p in zip(tensors, pieces))
                cuts += pieces != held
                if whole and seed < self.WRITTEN:
                    self.write_and_read(rng, mesh, layout, tensors, pieces)
                    read += 1
        self.assertGreater(read, 10)
        self.assertGreater(cuts, 0)

    def compare(self, slow, tensors, held):
        for rank in range(slow.ranks):
            for t, boxes, expected in zip(tensors, held, slow.held(rank)):
                whole = np.arange(math.prod(t["shape"])).reshape(t["shape"])
                mine = [whole[tuple(slice(*r) for r in b)] for b, r in boxes.items() if rank in r]
                mine = [x for part in mine for x in part.reshape(-1).tolist()]
                self.assertEqual(len(mine), len(set(mine)), (rank, t))
                self.assertEqual(set(mine), expected, (rank, t))

    def write_and_read(self, rng, mesh, layout, tensors, pieces):
        data = [random_data(t, rng, rng.random() < 0.5) for t in tensors]
        deal = deal_out(rng, tensors, pieces, 0.4)
        write_checkpoint(self.folder, mesh, layout, tensors, data, deal, {"config.json": b"{}"})
        status, said = run(self.folder)
        self.assertTrue(status == 0 and said.startswith("ok: "), said)
        out = os.path.join(self.scratch, "tensor.npy")
        for t, values in zip(tensors, data):
            self.assertEqual(run(self.folder, "--tensor", t["name"], "--out", out)[0], 0)
            self.assertEqual(np.load(out).tobytes(), take(values, t, [(0, n) for n in t["shape"]]))


class Defects(Scratch):
    def test_a_whole_checkpoint_is_read(self):
        write_checkpoint(self.folder, *base())
        self.assertEqual(run(self.folder), (0, "ok: 7 tensors, 2 files, 12 pieces\n"))
        with open(os.path.join(self.folder, "stranger"), "w"):
            pass
        status, said = run(self.folder)
        self.assertEqual(status, 0)
        self.assertIn("'stranger' is not part", said)
        self.assertEqual(run(self.folder, "--list")[1].count("\n"), 8)

    def test_other_json_of_the_same_value_is_told_of(self):
        spaces = {"text": lambda _, raw: raw.replace(b",", b", ")}
        write_checkpoint(self.folder, *base(), spaces)
        status, said = run(self.folder)
        self.assertEqual(status, 0)
        self.assertIn("not canonical JSON", said)

    def test_each_is_refused_for_its_own_reason(self):
        for title, hooks, expected in defects():
            with self.subTest(title):
                mesh, layout, tensors, data, deal, side = base()
                if callable(hooks):
                    hooks(deal)
                    hooks = {}
                write_checkpoint(self.folder, mesh, layout, tensors, data, deal, side, hooks)
                status, said = run(self.folder)
                self.assertEqual(status, 1, said)
                self.assertIn(expected, said)

    def test_nothing_is_there(self):
        done = subprocess.run(
            [sys.executable, "-B", READER, self.scratch], capture_output=True, text=True
        )
        self.assertEqual((done.returncode, done.stderr), (1, ""))


class Hostile(Scratch):
    """Random changes under fitting CRCs: a verdict each time, never another exception."""

    COUNT = 100
    VALUES = [
        None,
        -1,
        0,
        1,
        2,
        3,
        255,
        2**31,
        2**40,
        2**62,
        "",
        "tp",
        "\u00f6",
        [],
        {},
        True,
        [1],
        [0] * 70,
        {"tp": 1},
        [2**40, 2**22],
    ]
    NUMBERS = [-1, 0, 1, 2, 5000, 2**31, 2**62, -(2**63)]

    def setUp(self):
        super().setUp()
        write_checkpoint(self.folder, *base())
        self.manifest = text(Checkpoint(self.folder).manifest)
        self.good = self.folder + "-good"
        shutil.copytree(self.folder, self.good)

    def test_manifests(self):
        rng, refused = random.Random(11), 0
        for _ in range(self.COUNT):
            m = json.loads(self.manifest)
            spot, key = [m], 0
            while isinstance(spot[key], (dict, list)) and spot[key] and rng.random() < 0.9:
                spot = spot[key]
                key = rng.choice(list(spot)) if isinstance(spot, dict) else rng.randrange(len(spot))
            if spot != [m]:
                spot[key] = rng.choice(self.VALUES)
            reseal(self.folder, m if spot != [m] else rng.choice(self.VALUES))
            refused += run(self.folder)[0]
        self.assertGreater(refused, self.COUNT // 2)

    def test_indexes(self):
        rng, refused = random.Random(12), 0
        for _ in range(self.COUNT):
            shutil.rmtree(self.folder)
            shutil.copytree(self.good, self.folder)
            shard = rng.choice(Checkpoint(self.folder).shards)
            end = shard.index_at + shard.index_size
            index = bytearray(shard.data[shard.index_at : end].tobytes())
            at = rng.randrange(0, len(index) - 8)
            if rng.random() < 0.6:
                struct.pack_into("<q", index, at - at % 8, rng.choice(self.NUMBERS))
            else:
                index[at] = rng.randrange(256)
            reseal(self.folder, json.loads(self.manifest), shard, bytes(index))
            refused += run(self.folder)[0]
        self.assertGreater(refused, self.COUNT // 2)


class Casts(unittest.TestCase):
    def test_round_to_nearest_even_in_one_step(self):
        values = np.random.default_rng(3).normal(size=200).tolist() + [
            0.0,
            -0.0,
            1e-40,
            3.4e38,
            -1e300,
            65519.9,
            65520.0,
            1.00390625,
            1.00390625 + 1e-12,
            1.01171875,
            1.01171875 - 1e-12,
            1e-7,
            2e-8,
            math.inf,
            -math.inf,
        ]
        for dtype, form in (("bf16", (16, 127, 7)), ("f16", (16, 15, 10))):
            with np.errstate(all="ignore"):
                mine = from_float64(np.array(values), dtype).view("<u2").tolist()
            for value, code in zip(values, mine):
                self.assertEqual(code, rounded(value, *form), (dtype, value))


class Certificates(Scratch):
    """A certificate between two Hugging Face directories, and disagreements with it."""

    def setUp(self):
        super().setUp()
        self.a, self.b = self.folder + "-a", self.folder + "-b"
        os.mkdir(self.a)
        os.mkdir(self.b)
        values = np.random.default_rng(4).normal(size=213).astype("<f4")
        values[:4] = [np.nan, np.inf, -0.0, 1e-45]
        with np.errstate(all="ignore"):
            short = from_float64(values.astype(float), "bf16")
        back = (short.view("<u2").astype(np.uint32) << 16).view("<f4")
        self.changed = int(((back != values) & ~np.isnan(values)).sum())
        x, y, small = values.tobytes(), short.tobytes(), bytes(range(24))
        save_safetensors(
            f"{self.a}/model.safetensors",
            {"w": ("f32", [213], x), "k": ("u8", [4, 6], small), "g": ("u8", [2], b"ab")},
        )
        save_safetensors(f"{self.a}/optimizer.safetensors", {"w@m": ("f32", [213], x)})
        save_safetensors(
            f"{self.b}/model.safetensors", {"w": ("bf16", [213], y), "k": ("u8", [4, 6], small)}
        )
        save_safetensors(f"{self.b}/optimizer.safetensors", {"w@m": ("f32", [213], x)})
        Path(self.a, "config.json").write_bytes(b"{}")
        Path(self.a, "other.bin").write_bytes(b"not carried")
        self.digests = {n: crc_text(v) for n, v in (("x", x), ("y", y), ("k", small))}

    def prove(self, **changes):
        c, end = self.digests, {"format": "hf", "mesh": NO_MESH, "save_id": ""}
        cast = {"from": "f32", "reason": "", "rounded": self.changed, "to": "bf16"}
        proof = {
            "covered": {"elements": 450, "source": 450, "target": 450},
            "dropped": [
                {"bytes": 2, "digest": "", "dtype": "u8", "name": "g", "reason": "", "shape": [2]},
                {
                    "bytes": 2,
                    "digest": crc_text(b"{}"),
                    "dtype": "",
                    "name": "config.json",
                    "reason": "",
                    "shape": [],
                },
            ],
            "padded": [],
            "proved": "sent",
            "schema": "remesh.proof/1",
            "source": {**end, "tensors": 4},
            "target": {**end, "manifest": "", "tensors": 3},
            "tensors": [
                {"cast": cast, "name": "w", "source": c["x"], "target": c["y"]},
                {"cast": None, "name": "k", "source": c["k"], "target": c["k"]},
                {"cast": None, "name": "w@m", "source": c["x"], "target": c["x"]},
            ],
        }
        for key, change in changes.items():
            change(proof[key])
        raw = text(proof)[:-1]
        raw += b',"this_digest":"' + crc_text(raw).encode() + b'"}'
        Path(self.b, "proof.json").write_bytes(raw)
        return run("--prove", self.a, self.b)

    def test_a_good_one_is_proved(self):
        self.assertEqual(self.prove(), (0, "proved: 3 tensors, 450 elements, 1 cast, 2 dropped\n"))

    def test_each_disagreement_is_named(self):
        for key, change, expected in [
            ("covered", lambda v: v.update(source=449), "covered.source"),
            ("dropped", lambda v: v.pop(), "dropped 'config.json'"),
            ("dropped", lambda v: v[0].update(bytes=3), "dropped 'g'"),
            ("tensors", lambda v: v[0]["cast"].update(rounded=1), "1 values changed"),
            ("tensors", lambda v: v[0].update(cast=None), "dtypes of source and target"),
            ("tensors", lambda v: v[1].update(source=self.digests["x"]), "'k', source digest"),
            ("tensors", lambda v: v.pop(), "number of tensors"),
            ("source", lambda v: v.update(tensors=5), "source.tensors"),
            ("source", lambda v: v.update(format="remesh"), "source.format"),
            ("target", lambda v: v.update(manifest="crc64xz:" + "0" * 16), "target.manifest"),
            ("padded", lambda v: v.append({}), "padded"),
        ]:
            with self.subTest(expected):
                status, said = self.prove(**{key: change})
                self.assertEqual(status, 1, said)
                self.assertIn(expected, said)

    def test_damage_is_seen(self):
        self.prove()
        proof = Path(self.b, "proof.json")
        proof.write_bytes(proof.read_bytes().replace(b'"sent"', b'"read back"'))
        self.assertIn("digest", run("--prove", self.a, self.b)[1])
        self.prove()
        model = f"{self.b}/model.safetensors"
        flip(model, os.path.getsize(model) - 1)
        self.assertIn("'k', target digest", run("--prove", self.a, self.b)[1])


if __name__ == "__main__":
    unittest.main()
