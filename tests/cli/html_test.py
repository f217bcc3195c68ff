#!/usr/bin/env python3
"""The page that `verify --html` writes: one whole document, in which names from files stay text.

    html_test.py PROGRAM FIXTURES

In a browser `./dev interop` looks at it.
"""

import json
import struct
import subprocess
import sys
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path

PROGRAM = FIXTURES = None
HOSTILE = '</script><img src=x onerror="a\'b">&amp;<style>'
VOID = {"wbr", "meta", "input", "link", "img", "br", "hr"}
ALLOWED = {"href", "id", "class", "type", "name", "value", "content", "charset", "lang", "http-equiv", "aria-label",
           "aria-labelledby", "aria-live", "role", "scope", "hidden", "checked", "placeholder", "tabindex",
           "data-severity", "data-id", "data-label", "viewbox", "preserveaspectratio", "xmlns", "width", "height", "x",
           "y", "text-anchor", "style"}


class Page(HTMLParser):
    """Every element is closed in order; no attribute is a handler or asks for something."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.texts, self.ids, self.links = [], [], [], set(), []
        self.feed(text)
        self.close()
        if self.open:
            raise AssertionError(f"never closed: {self.open}")

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name not in ALLOWED:
                raise AssertionError(f"<{tag} {name}={value!r}>")
            if name == "id":
                if value in self.ids:
                    raise AssertionError(f"the id {value} is there twice")
                self.ids.add(value)
            if name == "href":
                self.links.append(value)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f"</{tag}> closes nothing")

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)


def hostile_checkpoint(path):
    path.mkdir()
    payload = struct.pack("<16f", *([float("nan")] + [1.0] * 15))
    names = [f"model.layers.{layer}.{HOSTILE}.weight" for layer in range(3)]
    header = {name: {"dtype": "F32", "shape": [4, 4], "data_offsets": [64 * k, 64 * k + 64]} for k, name in enumerate(names)}
    text = json.dumps(header).encode()
    (path / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + 3 * payload)


class Html(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="remesh-html-")
        self.addCleanup(scratch.cleanup)
        self.home = Path(scratch.name)

    def page(self, *arguments, code=0):
        done = subprocess.run([PROGRAM, "verify", *map(str, arguments), "--html", "page.html"], cwd=self.home,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return Page((self.home / "page.html").read_text(encoding="utf-8"))

    def check(self, page):
        self.assertEqual((page.tags.count("script"), page.tags.count("style"), page.tags.count("h1")), (1, 1, 1))
        for link in page.links:
            self.assertTrue(link.startswith("#") and link[1:] in page.ids, link)

    def test_a_whole_checkpoint(self):
        page = self.page(FIXTURES / "llama-gqa", "--level", "deep")
        self.check(page)
        text = " ".join(page.texts)
        for words in ("Nothing was found", "Layer by layer", "2^"):
            self.assertIn(words, text)
        self.assertIn("model.layers.*.mlp.up_proj.weight", "".join(page.texts))

    def test_hostile_names(self):
        hostile_checkpoint(self.home / "hf")
        page = self.page("hf", "--level", "deep", code=1)
        self.check(page)
        self.assertNotIn("img", page.tags)
        self.assertIn(f"model.layers.*.{HOSTILE}.weight", "".join(page.texts))
        self.assertTrue(any(f"model.layers.2.{HOSTILE}.weight" in text for text in page.texts))

    def test_two_sides(self):
        subprocess.run([PROGRAM, "convert", FIXTURES / "llama-gqa", self.home / "ck", "--mesh", "tp=2,pp=2", "-q"], check=True,
                       stdout=subprocess.DEVNULL)
        page = self.page("ck", "--against", FIXTURES / "llama-gqa")
        self.check(page)
        self.assertEqual(page.tags.count("figcaption"), 2)
        self.assertIn("66 of 66 tensors", page.texts)

    def test_a_file_that_cannot_be_opened(self):
        (self.home / "hf").mkdir()
        (self.home / "hf/model.safetensors").write_bytes(b"\0" * 20)
        page = self.page("hf", code=1)
        self.check(page)
        self.assertIn("not readable", page.texts)


if __name__ == "__main__":
    PROGRAM, FIXTURES = str(Path(sys.argv.pop(1)).resolve()), Path(sys.argv.pop(1)).resolve()
    unittest.main()
