"""The main job, as a user runs it: a model to three meshes and back, byte for byte.

usage: main_job_test.py PROGRAM SOURCE_DIR

Runs on the shipped fixtures, and on the published model beside the sources where that is found.
"""

import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
FIXTURES = SOURCE / "fixtures"
STORIES = SOURCE.parent / "shared/data/real"
CHAIN = [("convert", "ck1", ["--mesh", "tp=2,pp=2"]), ("reshard", "ck2", ["--mesh", "tp=4,dp=2"]),
         ("reshard", "ck3", ["--mesh", "tp=1,pp=3"]), ("convert", "out", ["--to", "hf"])]


def remesh(*arguments, exit_code=0):
    """Runs the program; returns what it printed on both streams."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != exit_code:
        raise AssertionError(f"remesh {arguments}: exit {done.returncode}, expected {exit_code}\n"
                             f"{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def files_below(directory):
    """Relative path -> bytes of every file."""
    return {str(path.relative_to(directory)): path.read_bytes()
            for path in sorted(pathlib.Path(directory).rglob("*")) if path.is_file()}


def run_chain(source, directory, *options):
    """The main job; returns the directories that it made, the source first."""
    made = [source]
    for verb, name, arguments in CHAIN:
        target = pathlib.Path(directory) / name
        stdout, _ = remesh(verb, made[-1], target, *arguments, *options)
        assert stdout.splitlines()[-1] == str(target), stdout
        made.append(target)
    return made


def flip(path, offset, mask=0x01):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ mask]))


class MainJob(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="remesh-main-job-"))
        self.addCleanup(shutil.rmtree, self.directory)

    def test_every_file_comes_back(self):
        for fixture in ("llama-gqa", "llama-gqa-sharded", "llama-state", "llama-tied-state", "moe-state"):
            with self.subTest(fixture):
                work = self.directory / fixture
                work.mkdir()
                made = run_chain(FIXTURES / fixture, work, "--read-back")
                self.assertEqual(files_below(made[-1]), files_below(made[0]))

    def test_h5py_reads_f32_to_the_right_values(self):
        model = self.directory / "f32"
        model.mkdir()
        data = struct.pack("<13f", *(0.25 * k - 1 for k in range(13)))
        header = (b'{"m":{"dtype":"F32","shape":[4,3],"data_offsets":[0,48]},'
                  b'"scalar":{"dtype":"F32","shape":[],"data_offsets":[48,52]}}').ljust(120)
        (model / "model.safetensors").write_bytes(struct.pack("<Q", 120) + header + data)
        remesh("convert", model, self.directory / "ck", "--mesh", "dp=2")
        read = subprocess.run(["/usr/bin/python3", "-B", SOURCE / "tests/python/h5py_reads.py",
                               self.directory / "ck", model], capture_output=True, text=True)
        self.assertEqual((read.returncode, read.stdout), (0, "h5py: 2 tensors equal\n"), read.stderr)

    def test_threads_and_memory_change_no_byte(self):
        first = None
        for options in (["-j", "1"], ["-j", "2"], ["-j", "5"], ["-j", "3", "--memory", "64MiB"]):
            work = self.directory / "-".join(options).replace("--", "")
            work.mkdir()
            made = run_chain(FIXTURES / "llama-gqa", work, *options)
            contents = [files_below(directory) for directory in made[1:]]
            first = first or contents
            self.assertEqual(contents, first, options)

    def test_a_shard_size_gives_the_shards_that_transformers_writes(self):
        run_chain(FIXTURES / "llama-gqa", self.directory)
        remesh("convert", self.directory / "ck3", self.directory / "sharded", "--to", "hf",
               "--shard-size", "65KB")
        self.assertEqual(files_below(self.directory / "sharded"),
                         files_below(FIXTURES / "llama-gqa-sharded"))

    def test_all_pairs_are_equal_at_full_and_at_header(self):
        made = run_chain(FIXTURES / "llama-gqa", self.directory)
        for left in made:
            for right in made:
                stdout, _ = remesh("verify", left, "--against", right)
                self.assertIn("recomputed", stdout)
        stdout, _ = remesh("verify", made[1], "--against", made[2], "--level", "header")
        self.assertIn("recorded", stdout)

    def test_a_flip_is_found_and_refused_and_nothing_is_left(self):
        made = run_chain(FIXTURES / "llama-gqa", self.directory)
        shard = next(made[1].glob("shard-*.h5"))
        flip(shard, shard.stat().st_size // 2)
        stdout, _ = remesh("verify", made[1], "--against", made[0], exit_code=1)
        self.assertIn("RM207", stdout)
        self.assertIn(shard.name, stdout)
        before = sorted(os.listdir(self.directory))
        _, stderr = remesh("reshard", made[1], self.directory / "new", "--mesh", "tp=4", exit_code=5)
        self.assertIn("RM", stderr)
        self.assertEqual(sorted(os.listdir(self.directory)), before)

    def test_a_missing_shard_is_refused_and_nothing_is_left(self):
        made = run_chain(FIXTURES / "llama-gqa", self.directory)
        (made[1] / "shard-00001-of-00004.h5").unlink()
        remesh("verify", made[1], exit_code=1)
        before = sorted(os.listdir(self.directory))
        _, stderr = remesh("reshard", made[1], self.directory / "new", "--mesh", "tp=4", exit_code=5)
        self.assertIn("RM203", stderr)
        self.assertEqual(sorted(os.listdir(self.directory)), before)

    def test_copies_are_stored_and_judged_each(self):
        remesh("convert", FIXTURES / "llama-gqa", self.directory / "ck", "--mesh", "tp=2,dp=2",
               "--copies", "2")
        remesh("verify", self.directory / "ck")
        one = sum(map(len, files_below(FIXTURES / "llama-gqa").values()))
        two = sum(map(len, files_below(self.directory / "ck").values()))
        self.assertGreater(two, 2 * 596096)
        self.assertGreater(two, one)
        stdout, _ = remesh("reshard", self.directory / "ck", self.directory / "back", "--mesh",
                           "tp=1")
        self.assertIn("replicas not compared: 66 tensors", stdout)

    @unittest.skipUnless((STORIES / "stories260K_hf_derived").is_dir(),
                         "the published model is not beside the sources")
    def test_the_published_model_still_tells_its_story(self):
        made = run_chain(STORIES / "stories260K_hf_derived", self.directory, "--read-back")
        self.assertEqual(files_below(made[-1]), files_below(made[0]))
        read = subprocess.run(["/usr/bin/python3", "-B", SOURCE / "tests/python/h5py_reads.py",
                               made[1], made[0]], capture_output=True, text=True)
        self.assertEqual(read.returncode, 0, read.stdout + read.stderr)
        told = subprocess.run(
            ["/usr/bin/python3", "-B", SOURCE / "tests/python/forward.py", "stories", made[-1],
             STORIES / "stories260K/tok512.bin", STORIES / "stories260K/EXPECTED_greedy.txt"],
            capture_output=True, text=True)
        self.assertEqual(told.returncode, 0, told.stdout + told.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
