#!/usr/bin/env python3
"""`verify` names the first element in which sound copies of a native checkpoint differ.

    unlike_copies_test.py PROGRAM FIXTURES

A shard gets other numbers and the CRCs that fit them, as a writer records them whose ranks had drifted apart.
"""

import json
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "fixtures/make"))
from reference_reader import Checkpoint
from reference_writer import crc64, reseal

NORM = "model.norm.weight"
BYTES = 128  # 64 elements of bf16, which lie at the end of the Hugging Face file


def remesh(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


class UnlikeCopies(unittest.TestCase):
    def setUp(self):
        self.scratch = Path(tempfile.mkdtemp(prefix="remesh-copies-"))
        self.addCleanup(shutil.rmtree, self.scratch)
        self.norm = (FIXTURES / "llama-gqa/model.safetensors").read_bytes()[-BYTES:]

    def make(self, copies):
        path = self.scratch / f"copies{copies}"
        done = remesh("convert", FIXTURES / "llama-gqa", path, "--mesh", f"dp={copies}", "--copies", copies, "-q")
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def drift(self, path, number, element, by):
        """Adds to the bits of one element of the norm in one shard, and makes all CRCs fit."""
        checkpoint = Checkpoint(str(path))
        shard = checkpoint.shards[number]
        raw = bytearray(Path(shard.path).read_bytes())
        at = raw.find(self.norm)
        self.assertGreater(at, 0)
        index = bytearray(raw[shard.index_at : shard.index_at + shard.index_size])
        old = struct.pack("<Q", crc64(self.norm))
        self.assertEqual(index.count(old), 1)
        (bits,) = struct.unpack_from("<H", raw, at + 2 * element)
        struct.pack_into("<H", raw, at + 2 * element, bits + by)
        new = struct.pack("<Q", crc64(bytes(raw[at : at + BYTES])))
        Path(shard.path).write_bytes(raw)
        reseal(str(path), checkpoint.manifest, shard, bytes(index.replace(old, new)))
        return at + 2 * element

    def judged(self, path, level, code=1):
        done = remesh("verify", path, "--level", level, "--json")
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)["findings"]

    def test_copies_as_they_are_written(self):
        self.assertEqual(self.judged(self.make(2), "full", 0), [])

    def test_one_of_two(self):
        path = self.make(2)
        at = self.drift(path, 1, 17, 3)
        (bits,) = struct.unpack_from("<H", self.norm, 34)
        for level in ("full", "deep"):
            (finding,) = self.judged(path, level)
            self.assertEqual((finding["id"], finding["tensor"], finding["box"]), ("RM401", NORM, [[17, 18]]))
            self.assertEqual(finding["file"], "shard-00001-of-00002.h5")
            self.assertEqual(finding["bytes"], {"begin": at, "end": at + 2})
            self.assertIn(f"(0x{bits + 3:04x})", finding["found"])
            self.assertIsNone(finding["expected"])
            self.assertIn("3 ulps apart; 2 copies, 2 different ones, none of which has a majority", finding["message"])
            self.assertIn("rank 0, shard-00000-of-00002.h5", finding["message"])

    def test_what_is_recorded_tells_as_much_as_it_can(self):
        path = self.make(2)
        self.drift(path, 1, 17, 3)
        for level in ("header", "quick"):
            (finding,) = self.judged(path, level)
            self.assertEqual((finding["id"], finding["box"], finding["found"]), ("RM401", [[0, 64]], None))

    def test_the_first_against_a_majority(self):
        path = self.make(3)
        self.drift(path, 0, 63, 1)
        (bits,) = struct.unpack_from("<H", self.norm, 126)
        findings = [finding for finding in self.judged(path, "full") if finding["id"] == "RM401"]
        self.assertEqual(len(findings), 1)
        self.assertEqual((findings[0]["file"], findings[0]["box"]), ("shard-00000-of-00003.h5", [[63, 64]]))
        self.assertIn(f"(0x{bits:04x})", findings[0]["expected"])
        self.assertIn("1 ulp apart; 3 copies, 2 different ones, of which 2 are as copy 1", findings[0]["message"])

    def test_a_damaged_copy_is_damaged_and_no_other_opinion(self):
        path = self.make(2)
        shard = Path(Checkpoint(str(path)).shards[1].path)
        raw = bytearray(shard.read_bytes())
        raw[raw.find(self.norm)] ^= 1
        shard.write_bytes(raw)
        self.assertEqual([finding["id"] for finding in self.judged(path, "full")], ["RM207"])


if __name__ == "__main__":
    PROGRAM, FIXTURES = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2]).resolve()
    unittest.main(argv=sys.argv[:1])
