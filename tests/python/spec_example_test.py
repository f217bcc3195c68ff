"""The worked example of format/SPEC.md shows the bytes of the golden checkpoint that it names.

    spec_example_test.py SOURCE_DIR
"""

import re
import subprocess
import sys
import unittest
from pathlib import Path

SOURCE = Path(sys.argv.pop(1)).resolve()
GOLDEN = SOURCE / "fixtures/golden/v1/copies"
SHARD = "shard-00001-of-00003.h5"
PAGE = (SOURCE / "format/SPEC.md").read_text().partition("\n## 13. A worked example\n")[2]
ROW = re.compile(r"^\| ([0-9,]+) \| (?:`([0-9a-f ]+)`|([0-9,]+) × `00`) \| (.*) \|$", re.M)
LEFT_OUT = ("FILTERS {", "FILLVALUE {", "ALLOCATION_TIME {")


def number(text):
    return int(text.replace(",", ""))


def rows():
    """(offset, bytes, meaning) of each row of the tables."""
    found = []
    for offset, shown, zeros, meaning in ROW.findall(PAGE):
        found.append(
            (number(offset), bytes.fromhex(shown) if shown else bytes(number(zeros)), meaning)
        )
    return found


def shortened(dump):
    """The output of h5dump without the blocks that the page leaves out."""
    kept, end = [], None
    for line in dump.splitlines():
        if end is None and line.strip() in LEFT_OUT:
            end = line[: len(line) - len(line.lstrip())] + "}"
        elif end is None:
            kept.append(line)
        elif line == end:
            end = None
    return "\n".join(kept)


class Example(unittest.TestCase):
    def test_texts(self):
        blocks = re.findall(r"^```\w*\n(.*?)\n```$", PAGE, re.M | re.S)
        self.assertEqual(blocks[0] + "\n", (GOLDEN / "COMMIT").read_text())
        self.assertEqual(blocks[1], (GOLDEN / "manifest.json").read_text())
        self.assertEqual(len(blocks), 3)

    def test_bytes(self):
        raw = (GOLDEN / SHARD).read_bytes()
        self.assertIn(f"`{SHARD}` has {len(raw):,} bytes", PAGE)
        shown = 0
        for offset, content, meaning in rows():
            self.assertEqual(raw[offset : offset + len(content)], content, meaning)
            shown += len(content)
        metadata = re.search(r"\[4,096, ([0-9,]+)\), are HDF5 metadata", PAGE)
        self.assertEqual(shown, len(raw) - (number(metadata[1]) - 4096))

    def test_numbers(self):
        """What a row says of a field of up to 8 bytes is what the bytes are."""
        told = 0
        for _, content, meaning in rows():
            if meaning.startswith("zeros"):
                continue
            value = int.from_bytes(content, "little")
            said = re.search(r"CRC[^:]*: ([0-9a-f]{16})", meaning)
            if said:
                self.assertEqual(int(said[1], 16), value, meaning)
            elif len(content) in (1, 4, 8) and (said := re.search(r"\b[0-9][0-9,]*\b", meaning)):
                self.assertEqual(number(said[0]), value, meaning)
            told += said is not None
        self.assertGreater(told, 18)

    def test_h5dump(self):
        done = subprocess.run(
            ["h5dump", "-p", "-H", SHARD], cwd=GOLDEN, check=True, capture_output=True, text=True
        )
        self.assertIn(f"```\n{shortened(done.stdout)}\n```", PAGE)
        self.assertEqual(done.stdout.count("FILTERS {"), done.stdout.count("NONE\n"))
        self.assertEqual(done.stdout.count("H5D_FILL_TIME_NEVER"), done.stdout.count("FILLVALUE {"))


if __name__ == "__main__":
    unittest.main()
