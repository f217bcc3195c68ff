#!/usr/bin/env python3
"""The reports of `verify`, `latest`, `fingerprint --check` and `diff` for machines: they say what was found, whatever names are like.

    reports_test.py PROGRAM FIXTURES
"""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import unquote

PROGRAM = FIXTURES = None
HOSTILE = '</script><img src=x onerror="a\'b">&|`%0A::error::]](x)'


def remesh(*arguments, cwd, code=0, env=None):
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", **(env or {})}
    environment.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
    done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=cwd, env=environment, capture_output=True, text=True)
    if done.returncode != code:
        raise AssertionError(f"remesh {arguments}: exit {done.returncode}, expected {code}\n{done.stdout}{done.stderr}")
    return done


def hostile_checkpoint(path):
    """Hugging Face files with NaN in a tensor of a hostile name."""
    path.mkdir()
    shape, payload = [4, 4], struct.pack("<16f", *([float("nan")] + [1.0] * 15))
    header = json.dumps({HOSTILE + ".weight": {"dtype": "F32", "shape": shape, "data_offsets": [0, 64]}}).encode()
    (path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + payload)
    return path


class Reports(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="remesh-reports-")
        self.addCleanup(scratch.cleanup)
        self.home = Path(scratch.name).resolve()
        self.good = self.home / "good"
        remesh("convert", FIXTURES / "llama-gqa", "good", "--mesh", "tp=2,pp=2", "-q", cwd=self.home)

    def damaged(self):
        """Another checkpoint: a flipped byte, a file too many."""
        path = self.home / "bad"
        if not path.exists():
            shutil.copytree(self.good, path)
            shard = sorted(path.glob("shard-*"))[0]
            content = bytearray(shard.read_bytes())
            content[200000] ^= 1
            shard.write_bytes(content)
            (path / "note <b>").touch()
        return path

    def junit(self, *arguments, code=0):
        remesh("verify", *arguments, "--junit", "junit.xml", cwd=self.home, code=code)
        return ET.parse(self.home / "junit.xml").getroot()

    def sarif(self, *arguments, code=0):
        remesh("verify", *arguments, "--sarif", "x.sarif", cwd=self.home, code=code)
        return json.loads((self.home / "x.sarif").read_text())["runs"][0]

    def check_counts(self, root):
        for node in [root, *root.iter("testsuite")]:
            cases = list(node.iter("testcase"))
            self.assertEqual(int(node.get("tests")), len(cases))
            self.assertEqual(int(node.get("failures")), sum(case.find("failure") is not None for case in cases))
            self.assertEqual(int(node.get("skipped")), sum(case.find("skipped") is not None for case in cases))
            self.assertEqual(int(node.get("errors")), sum(case.find("error") is not None for case in cases))

    def test_without_a_verdict_there_is_an_error_and_no_failure(self):
        name = HOSTILE.replace("/", "")
        done = remesh("verify", name, "--junit", "j.xml", "--sarif", "s.sarif", "--html", "h.html", "--annotations",
                      "github", cwd=self.home, code=4)
        message = f"cannot use '{name}': "
        root = ET.parse(self.home / "j.xml").getroot()
        self.check_counts(root)
        (case,) = root.iter("testcase")
        (suite,) = root.iter("testsuite")
        self.assertEqual((case.get("name"), suite.get("name")), ("no verdict", name))
        error = case.find("error")
        self.assertEqual(error.get("type"), "RM101")
        self.assertIn(name, error.text)
        self.assertIsNone(case.find("failure"))

        run = json.loads((self.home / "s.sarif").read_text())["runs"][0]
        (invocation,) = run["invocations"]
        self.assertEqual((invocation["executionSuccessful"], invocation["exitCode"], run["results"]), (False, 4, []))
        (note,) = invocation["toolExecutionNotifications"]
        self.assertEqual((note["level"], note["associatedRule"]["id"]), ("error", "RM101"))

        (annotation,) = [line for line in done.stderr.splitlines() if line.startswith("::")]
        self.assertTrue(annotation.startswith("::error title=remesh verify%3A no verdict%2C RM101::"), annotation)
        self.assertFalse((self.home / "h.html").exists())

    def test_a_run_that_is_stopped_says_so_in_its_reports(self):
        self.junit("good")
        process = subprocess.Popen([PROGRAM, "verify", "good", "--junit", "junit.xml", "--read-limit", "64KiB/s"],
                                   cwd=self.home, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while (self.home / "junit.xml").exists():
            self.assertIsNone(process.poll())
        process.terminate()
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143)
        root = ET.parse(self.home / "junit.xml").getroot()
        self.check_counts(root)
        (error,) = root.iter("error")
        self.assertEqual((error.get("type"), error.get("message")), ("stopped", "cannot go on: signal 15 asked to stop"))

    def test_a_verdict_stands_whatever_fails_after_it(self):
        remesh("verify", "good", "--junit", "junit.xml", "--annotations", "github", cwd=self.home, code=7,
               env={"GITHUB_STEP_SUMMARY": str(self.home / "none" / "summary")})
        root = ET.parse(self.home / "junit.xml").getroot()
        self.assertEqual((root.get("failures"), root.get("errors")), ("0", "0"))

    def test_diff_and_fingerprint_say_likewise_that_there_is_no_verdict(self):
        for arguments in (["diff", "good", "none"], ["fingerprint", "none", "--check", "lock"]):
            (self.home / "lock").write_text("# remesh fingerprint 1\n")
            remesh(*arguments, "--junit", "j.xml", cwd=self.home, code=4)
            (error,) = ET.parse(self.home / "j.xml").getroot().iter("error")
            self.assertIn("none", error.get("message"))

    def test_a_green_run_has_passed_cases(self):
        root = self.junit("good", "--level", "deep")
        self.check_counts(root)
        names = [case.get("name") for case in root.iter("testcase")]
        self.assertEqual(names, ["container and commit", "files", "tensors and coverage", "replicas", "numbers", "safety"])
        self.assertTrue(all(len(case) == 0 for case in root.iter("testcase")))
        self.assertNotIn("numbers", [case.get("name") for case in self.junit("good").iter("testcase")])

    def test_a_red_run_has_failures_with_text(self):
        root = self.junit("bad" if self.damaged() else "", code=1)
        self.check_counts(root)
        failures = {case.get("name"): case.find("failure") for case in root.iter("testcase")}
        self.assertEqual([name for name, failure in failures.items() if failure is not None], ["files"])
        self.assertEqual(failures["files"].get("type"), "RM207")
        self.assertIn("bit 0 of byte 200000", failures["files"].text)
        warned = [case.find("system-out") for case in root.iter("testcase") if case.get("name").startswith("container")]
        self.assertIn("warn RM108  note <b>", warned[0].text)

    def test_warnings_fail_where_they_are_to(self):
        self.damaged()
        root = self.junit("bad", "--fail-on", "warn", code=1)
        self.assertEqual(int(root.get("failures")), 2)

    def test_each_side_and_their_equality_are_suites(self):
        self.damaged()
        root = self.junit("good", "--against", "bad", code=1)
        self.check_counts(root)
        red = {suite.get("name"): int(suite.get("failures")) for suite in root}
        self.assertEqual(red, {"left: good": 0, "right: bad": 1, "left against right": 1})

    def test_ignored_findings_are_skipped_cases_and_suppressed_results(self):
        self.damaged()
        rules = '[[ignore]]\nid = "RM108"\nreason = "our <notes>"\nexpires = 9999-12-31\n'
        (self.home / "remesh.toml").write_text(rules)
        root = self.junit("bad", code=1)
        self.check_counts(root)
        skipped = [case for case in root.iter("testcase") if case.find("skipped") is not None]
        self.assertEqual([case.get("name") for case in skipped], ["ignored RM108 note <b>"])
        self.assertEqual(skipped[0].find("skipped").get("message"), "ignored until 9999-12-31: our <notes>")
        results = {result["ruleId"]: result for result in self.sarif("bad", code=1)["results"]}
        self.assertEqual(results["RM108"]["suppressions"],
                         [{"kind": "external", "status": "accepted", "justification": "our <notes> (until 9999-12-31)"}])
        self.assertEqual(results["RM207"]["suppressions"], [])

    def test_a_result_of_sarif_has_its_rule_place_and_fingerprint(self):
        self.damaged()
        run = self.sarif("bad", code=1)
        rules = run["tool"]["driver"]["rules"]
        self.assertEqual(run["tool"]["driver"]["name"], "remesh")
        for result in run["results"]:
            rule = rules[result["ruleIndex"]]
            self.assertEqual(rule["id"], result["ruleId"])
            self.assertTrue(rule["help"]["text"] and rule["help"]["markdown"] and rule["shortDescription"]["text"])
        by_rule = {result["ruleId"]: result for result in run["results"]}
        location = by_rule["RM207"]["locations"][0]
        self.assertEqual(location["physicalLocation"]["artifactLocation"]["uri"], "bad/shard-00000-of-00004.h5")
        region = location["physicalLocation"]["region"]
        self.assertTrue(region["byteOffset"] <= 200000 < region["byteOffset"] + region["byteLength"])
        self.assertEqual(location["logicalLocations"][0]["fullyQualifiedName"], "model.layers.3.self_attn.o_proj.weight")
        self.assertEqual(by_rule["RM207"]["level"], "error")
        self.assertEqual(by_rule["RM108"]["level"], "warning")
        uri = by_rule["RM108"]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        self.assertEqual((uri, unquote(uri)), ("bad/note%20%3Cb%3E", "bad/note <b>"))

    def test_fingerprints_stay_when_the_checkpoint_moves(self):
        shutil.copytree(self.damaged(), self.home / "other place")
        (self.home / "other place" / "note 2").touch()
        marks = [{result["partialFingerprints"]["remeshFinding/v1"] for result in self.sarif(name, code=1)["results"]}
                 for name in ("bad", self.home / "other place")]
        self.assertEqual(len(marks[1]), 3)
        self.assertLess(marks[0], marks[1])

    def test_hostile_names_stay_text(self):
        hostile_checkpoint(self.home / "hf")
        root = self.junit("hf", "--level", "deep", code=1)
        failure = next(case.find("failure") for case in root.iter("testcase") if case.get("name") == "numbers")
        self.assertIn(HOSTILE, failure.text)
        result = self.sarif("hf", "--level", "deep", code=1)["results"][0]
        self.assertEqual(result["locations"][0]["logicalLocations"][0]["name"], HOSTILE + ".weight")
        self.assertNotIn("](", result["message"]["text"])

    def test_reports_are_renewed_and_never_half_written(self):
        (self.home / "junit.xml").write_text("old")
        self.assertEqual(self.junit("good").tag, "testsuites")
        self.assertEqual([path.name for path in self.home.iterdir() if "remesh-" in path.name], [])
        (self.home / "link").symlink_to("good/manifest.json")
        for place, code in ((".", 10), ("/dev/null", 10), ("link", 10), ("good/x", 2), ("no/../good/x", 7),
                            ("./good/side/../x.xml", 2), ("good/manifest.json", 2), ("none/x", 7)):
            with self.subTest(place):
                remesh("verify", "good", "--sarif", place, cwd=self.home, code=code)
        (self.home / "way").symlink_to("good")
        remesh("verify", "good", "--sarif", "way/x", cwd=self.home, code=2)
        remesh("verify", "good", "--against", "good", "--sarif", "good/x", cwd=self.home, code=2)
        remesh("verify", "good", cwd=self.home)

    def test_what_was_not_opened_has_no_passed_case(self):
        (self.home / "hf").mkdir()
        (self.home / "hf/model.safetensors").write_bytes(b"\0" * 20)
        root = self.junit("hf", code=1)
        self.check_counts(root)
        self.assertEqual((root.get("tests"), root.get("failures")), ("1", "1"))
        root = self.junit("good", "--against", "hf", code=1)
        self.check_counts(root)
        self.assertEqual([suite.get("tests") for suite in root], ["5", "1", "0"])

    def test_a_file_of_another_checkpoint_is_not_overwritten(self):
        (self.home / "other.safetensors").write_text("weights")
        remesh("verify", "good", "--html", "other.safetensors", cwd=self.home, code=10)
        self.assertEqual((self.home / "other.safetensors").read_text(), "weights")

    def test_a_single_file_is_not_overwritten(self):
        hf = hostile_checkpoint(self.home / "hf") / "model.safetensors"
        before = hf.read_bytes()
        for place, code in ((hf, 10), (f"{hf}.remesh-seal.json", 2)):
            remesh("verify", hf, "--junit", place, cwd=self.home, code=code)
        self.assertEqual(hf.read_bytes(), before)
        remesh("verify", hf, "--junit", "hf/junit.xml", cwd=self.home)

    def test_what_cannot_be_written_is_told_in_one_document(self):
        if os.geteuid() == 0:
            place = "/proc/junit.xml"
        else:
            place = "/junit.xml"
        done = remesh("verify", "good", "--junit", place, "--json", cwd=self.home, code=7)
        self.assertEqual(json.loads(done.stdout)["code"], "io")

    def test_annotations_are_limited_and_counted(self):
        bad = self.damaged()
        sorted(bad.glob("shard-*"))[1].unlink()
        done = remesh("verify", "bad", "--json", "-q", cwd=self.home, code=1, env={"GITHUB_ACTIONS": "true"})
        document = json.loads(done.stdout)
        errors = [line for line in done.stderr.splitlines() if line.startswith("::error ")]
        self.assertGreater(document["counts"]["error"], 10)
        self.assertEqual(len(errors), 10)
        self.assertTrue(errors[0].startswith("::error title=RM"))
        self.assertEqual(sum(line.startswith("::warning ") for line in done.stderr.splitlines()), 1)
        self.assertEqual(done.stderr.splitlines()[-1],
                         f"remesh: {document['counts']['error']} errors, 1 warning; the first 10 of each severity are annotated")
        self.assertNotIn("::", remesh("verify", "bad", "--annotations", "off", cwd=self.home, code=1,
                                      env={"GITHUB_ACTIONS": "true"}).stderr)
        self.assertNotIn("::", remesh("verify", "bad", cwd=self.home, code=1).stderr)

    def test_a_name_begins_no_command_and_no_markup(self):
        hostile_checkpoint(self.home / "hf")
        summary = self.home / "summary.md"
        summary.write_text("before\n")
        done = remesh("verify", "hf", "--level", "deep", "--annotations", "github", cwd=self.home, code=1,
                      env={"GITHUB_STEP_SUMMARY": str(summary)})
        commands = [line for line in done.stderr.splitlines() if line.startswith("::")]
        self.assertEqual(len(commands), 1)
        self.assertTrue(commands[0].startswith("::error title=RM511 "))
        self.assertIn("%250A::error::", commands[0])
        text = summary.read_text()
        self.assertTrue(text.startswith("before\n### FAIL: remesh verify hf\n"))
        for mark in ("<", "`", "](", "&|"):
            self.assertNotIn(mark, text)
        self.assertIn("RM511", text)

    def test_a_summary_ends_below_what_github_takes(self):
        summary = self.home / "summary.md"
        summary.write_text("x" * (1 << 20))
        done = remesh("verify", "good", "--annotations", "github", cwd=self.home,
                      env={"GITHUB_STEP_SUMMARY": str(summary)})
        self.assertIn("the summary of this step is full", done.stderr)
        self.assertEqual(summary.stat().st_size, 1 << 20)

    def test_an_expired_rule_is_annotated(self):
        (self.home / "remesh.toml").write_text('[[ignore]]\nid = "RM108"\nreason = "x"\nexpires = 2020-01-01\n')
        done = remesh("verify", "good", "--annotations", "github", cwd=self.home)
        self.assertIn("::warning title=remesh%3A ignored findings::remesh.toml line 1: RM108", done.stderr)

    def run_of_three(self):
        """step-1 is whole, step-2 damaged, step-3 cannot be opened; a pointer names what is not there."""
        run = self.home / "run"
        run.mkdir()
        shutil.copytree(self.good, run / "step-1")
        shutil.copytree(self.damaged(), run / "step-2")
        (run / "step-3").mkdir()
        (run / "latest").write_text("step-9")
        return run

    def latest(self, *arguments, code=0, env=None):
        """The suites by name: (cases, failures); of SARIF (level, rule, uri); what is said on standard error."""
        done = remesh("latest", "run", "--level", "full", "--junit", "j.xml", "--sarif", "s.json", *arguments,
                      cwd=self.home, code=code, env=env)
        root = ET.parse(self.home / "j.xml").getroot()
        self.check_counts(root)
        suites = {suite.get("name"): (int(suite.get("tests")), int(suite.get("failures"))) for suite in root}
        results = json.loads((self.home / "s.json").read_text())["runs"][0]["results"]
        places = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results]
        told = [(result["level"], result["ruleId"], place) for result, place in zip(results, places)]
        return suites, told, done.stderr

    def test_of_a_run_that_has_a_whole_checkpoint_the_others_are_warnings(self):
        self.run_of_three()
        suites, told, said = self.latest("--annotations", "github")
        self.assertEqual(suites, {"run/step-3": (1, 0), "run/step-2": (5, 0), "run/step-1": (5, 0), "what pointers say": (1, 0)})
        verdicts = [next(one.get("value") for one in suite.iter("property") if one.get("name") == "verdict")
                    for suite in ET.parse(self.home / "j.xml").getroot()]
        self.assertEqual(verdicts, ["not whole", "not whole", "ok", "ok"])
        self.assertEqual(told, [("warning", "RM101", "run/step-3/"), ("warning", "RM107", "run/latest"),
                                ("warning", "RM108", "run/step-2/note%20%3Cb%3E"),
                                ("warning", "RM207", "run/step-2/shard-00000-of-00004.h5")])
        self.assertIn("::warning title=RM207 ", said)
        self.assertIn("::run/step-2: shard-00000-of-00004.h5 bytes", said)
        self.assertNotIn("::error", said)

    def test_of_a_run_without_one_they_are_errors(self):
        shutil.rmtree(self.run_of_three() / "step-1")
        suites, told, said = self.latest("--annotations", "github", code=1)
        self.assertEqual(suites, {"run/step-3": (1, 1), "run/step-2": (5, 1), "what pointers say": (1, 0)})
        self.assertEqual([level for level, rule, _ in told if rule in ("RM101", "RM207")], ["error", "error"])
        self.assertIn("::error title=RM207 ", said)

    def test_ignored_findings_of_a_run_are_counted(self):
        self.run_of_three()
        suites, _, _ = self.latest("--ignore", "RM207", "--fail-on", "warn", "--ignore", "RM108")
        self.assertEqual(suites, {"run/step-3": (1, 0), "run/step-2": (7, 0), "what pointers say": (1, 0)})
        document = json.loads(remesh("latest", "run", "--level", "full", "--ignore", "RM207", "--json", cwd=self.home).stdout)
        self.assertEqual(document["path"], "run/step-2")
        self.assertEqual([one["finding"]["id"] for one in document["ignored"]], ["RM207"])
        self.assertEqual([rule["status"] for rule in document["ignore_rules"]], ["used"])

    def test_no_report_lies_in_a_checkpoint_that_a_run_links_to(self):
        run = self.home / "run"
        run.mkdir()
        (run / "step-1").symlink_to(self.good)
        manifest = self.good / "manifest.json"
        before = manifest.read_bytes()
        for name in ("manifest.json", "new.xml"):
            remesh("latest", "run", "--junit", self.good / name, cwd=self.home, code=2)
        self.assertEqual(manifest.read_bytes(), before)
        self.assertFalse((self.good / "new.xml").exists())

    def test_fingerprints_are_reported_likewise(self):
        remesh("fingerprint", "good", "-o", "lock", "-q", cwd=self.home)
        lines = (self.home / "lock").read_text().splitlines()
        (self.home / "lock").write_text("\n".join(lines[:-1]) + "\n")
        remesh("fingerprint", "good", "--check", "lock", "--junit", "j.xml", "--sarif", "s.sarif", cwd=self.home, code=1)
        root = ET.parse(self.home / "j.xml").getroot()
        self.check_counts(root)
        self.assertEqual(root.get("failures"), "1")
        results = json.loads((self.home / "s.sarif").read_text())["runs"][0]["results"]
        self.assertEqual([result["ruleId"] for result in results], ["RM310"])
        remesh("fingerprint", "good", "--check", "lock", "--ignore", "RM310", cwd=self.home)
        remesh("fingerprint", "good", "--junit", "j.xml", cwd=self.home, code=2)

    def test_a_damaged_checkpoint_is_an_answer_to_a_lock_file_too(self):
        remesh("fingerprint", "good", "-o", "lock", "-q", cwd=self.home)
        self.damaged()
        done = remesh("fingerprint", "bad", "--check", "lock", "--junit", "j.xml", "--sarif", "s.sarif", "--html", "h.html",
                      "--ignore", "RM207", "--json", cwd=self.home, code=1)
        document = json.loads(done.stdout)
        self.assertEqual([finding["id"] for finding in document["findings"]], ["RM207"])
        self.assertEqual((document["tensors"], document["ignored"]), ([], []), "of what was not read nothing is ignored")
        root = ET.parse(self.home / "j.xml").getroot()
        self.check_counts(root)
        self.assertEqual((root.get("tests"), root.get("failures")), ("1", "1"))
        results = json.loads((self.home / "s.sarif").read_text())["runs"][0]["results"]
        self.assertEqual([result["ruleId"] for result in results], ["RM207"])
        self.assertIn("RM207", (self.home / "h.html").read_text())

    def test_differences_are_reported_likewise(self):
        shutil.copytree(FIXTURES / "llama-gqa", self.home / "hf")
        file = self.home / "hf/model.safetensors"
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
        remesh("diff", "good", "hf", "--junit", "j.xml", "--sarif", "s.sarif", "--html", "d.html", cwd=self.home, code=1)
        root = ET.parse(self.home / "j.xml").getroot()
        self.check_counts(root)
        self.assertEqual((root.get("tests"), root.get("failures")), ("1", "1"))
        result = json.loads((self.home / "s.sarif").read_text())["runs"][0]["results"][0]
        self.assertEqual((result["ruleId"], result["properties"]["box"]), ("RM311", "[63, 64)"))
        self.assertIn("1 of 64 elements differ", (self.home / "d.html").read_text())
        done = remesh("diff", "good", "hf", "--ignore", "RM311:model.norm.weight", "--json", cwd=self.home)
        document = json.loads(done.stdout)
        self.assertEqual((document["status"], len(document["ignored"])), ("ignored", 1))
        self.assertEqual((document["counts"]["different"], document["counts"]["ignored"]), (1, 1))
        self.assertIn(document["next_step"], result["message"]["text"])
        apart = remesh("diff", "good", "hf", "--include", "*norm*", "--ignore", "RM310", "--json", cwd=self.home, code=1)
        self.assertEqual(json.loads(apart.stdout)["status"], "different")
        remesh("diff", "good", "hf", "--include", "*.mlp.*", cwd=self.home)
        remesh("diff", "good", "hf", "--html", "good/x", cwd=self.home, code=2)


if __name__ == "__main__":
    PROGRAM, FIXTURES = str(Path(sys.argv.pop(1)).resolve()), Path(sys.argv.pop(1)).resolve()
    unittest.main()
