"""What `remesh seal` writes fits its schema, and says of the files what format/SEAL.md says it does.

    seal_test.py PROGRAM SOURCE_DIR

Worked out from the page alone, with the CRC of the reference reader. Needs python3-jsonschema.
"""

import hashlib
import json
import math
import random
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import jsonschema

SOURCE = Path(sys.argv.pop(2)).resolve()
PROGRAM = Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(SOURCE / "fixtures/make"))

from reference_basics import BITS  # noqa: E402
from reference_crc import crc_text  # noqa: E402

MIB = 1 << 20
END = b',"this_digest":"'
SCHEMA = json.loads((SOURCE / "format/remesh.seal.1.json").read_text())


def tree(data):
    leaves = [hashlib.blake2b(b"\0" + i.to_bytes(8, "little") + data[at:at + MIB], digest_size=32)
              for i, at in enumerate(range(0, len(data), MIB))]
    root = b"\1" + len(data).to_bytes(8, "little") + b"".join(leaf.digest() for leaf in leaves)
    return hashlib.blake2b(root, digest_size=32).hexdigest()


def problems(seal, directory):
    """What in the seal is not so."""
    data = [(directory / file["name"]).read_bytes() for file in seal["files"]]
    taken = [[] for _ in data]
    for tensor in seal["tensors"]:
        content = b""
        for piece in tensor["pieces"]:
            size = math.prod(end - begin for begin, end in piece["box"]) * BITS[tensor["dtype"]] // 8
            here = data[piece["file"]][piece["offset"]:piece["offset"] + size]
            blocks = "".join(crc_text(here[at:at + MIB])[8:] for at in range(0, size, MIB))
            if blocks != piece["blocks"] or len(here) != size:
                yield f"{tensor['name']}: blocks {blocks}"
            taken[piece["file"]].append((piece["offset"], size))
            content += here
        if crc_text(content) != tensor["digest"]:
            yield f"{tensor['name']}: digest"
        if [piece["box"] for piece in tensor["pieces"]] != [[[0, size] for size in tensor["shape"]]]:
            yield f"{tensor['name']}: boxes"
    for number, file in enumerate(seal["files"]):
        rest, at = b"", 0
        for offset, size in sorted(place for place in taken[number] if place[1]):
            rest += data[number][at:offset]
            at = offset + size
        rest += data[number][at:]
        if crc_text(rest) != file["rest"] or len(data[number]) != file["size"]:
            yield f"{file['name']}: rest or size"
    if seal["blake2b"] is not None and seal["blake2b"] != [tree(content) for content in data]:
        yield "blake2b"


class Seals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="remesh-seal-")
        scratch = Path(cls.scratch.name)
        for name in ("llama-gqa", "llama-gqa-sharded", "moe-state"):
            shutil.copytree(SOURCE / "fixtures" / name, scratch / name)
        large = scratch / "large"
        large.mkdir()
        shape = [3, MIB // 2 + 77]
        size = 2 * math.prod(shape)
        header = json.dumps({"w": {"dtype": "F16", "shape": shape, "data_offsets": [0, size]},
                             "none": {"dtype": "F32", "shape": [0], "data_offsets": [size, size]}})
        header = header.ljust((len(header) + 7) // 8 * 8).encode()
        (large / "model.safetensors").write_bytes(
            len(header).to_bytes(8, "little") + header + random.Random(1).randbytes(size))
        (large / "empty.txt").write_bytes(b"")
        subprocess.run(["minisign", "-G", "-W", "-s", scratch / "key", "-p", scratch / "key.pub"],
                       check=True, stdout=subprocess.DEVNULL)
        cls.directories = [scratch / name
                           for name in ("llama-gqa", "llama-gqa-sharded", "moe-state", "large")]
        for directory in cls.directories:
            signed = ["--sign", scratch / "key"] if directory == large else []
            subprocess.run([PROGRAM, "seal", directory, "-q", *signed], check=True,
                           stdout=subprocess.DEVNULL)
        cls.texts = [(place / "remesh-seal.json").read_bytes() for place in cls.directories]

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_schema(self):
        jsonschema.Draft7Validator.check_schema(SCHEMA)
        judge = jsonschema.Draft7Validator(SCHEMA)
        for text in self.texts:
            judge.validate(json.loads(text))
        document = json.loads(self.texts[0])
        for key in document:
            without = {k: v for k, v in document.items() if k != key}
            self.assertFalse(judge.is_valid(without), key)
        self.assertFalse(judge.is_valid({**document, "more": 1}))
        for key in document["tensors"][0]["pieces"][0]:
            spoilt = json.loads(self.texts[0])
            del spoilt["tensors"][0]["pieces"][0][key]
            self.assertFalse(judge.is_valid(spoilt), key)

    def test_it_is_canonical_and_ends_in_its_digest(self):
        for text in self.texts:
            before = text[:-len(END) - 26]
            self.assertEqual(text[len(before):], END + crc_text(before).encode() + b'"}')
            again = json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
            self.assertEqual(again.encode(), text)

    def test_it_says_what_the_files_hold(self):
        for directory, text in zip(self.directories, self.texts):
            with self.subTest(directory.name):
                seal = json.loads(text)
                names = {path.name for path in directory.iterdir()} - {
                    "remesh-seal.json", "remesh-seal.json.minisig"}
                self.assertEqual([file["name"] for file in seal["files"]], sorted(names))
                self.assertEqual(list(problems(seal, directory)), [])
        self.assertIsNotNone(json.loads(self.texts[-1])["blake2b"])
        self.assertEqual(len(json.loads(self.texts[-1])["tensors"][0]["pieces"][0]["blocks"]), 64)

    def test_threads_change_nothing(self):
        for threads in ("1", "7"):
            out = Path(self.scratch.name, f"by-{threads}")
            subprocess.run([PROGRAM, "seal", self.directories[1], "-o", out, "-j", threads, "-q"],
                           check=True, stdout=subprocess.DEVNULL)
            self.assertEqual(out.read_bytes(), self.texts[1])


if __name__ == "__main__":
    unittest.main()
