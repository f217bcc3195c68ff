"""remesh and the real libraries read each other.

    interop_test.py PROGRAM

Runs in a Python that has fixtures/make/requirements.txt. Every model of fixtures/ goes to two meshes and back; then
the safetensors library, transformers and torch use what came out.
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"
sys.path.insert(0, str(FIXTURES / "make"))

import training  # first: it says how torch is to compute

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

PROGRAM = None
STATES = ("llama-state", "llama-tied-state", "moe-state")
MODELS = ("llama-gqa", *STATES)


def remesh(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"remesh {arguments}: exit code {done.returncode}: {done.stderr}")


def expected(name):
    return json.loads((FIXTURES / f"{name}.expected.json").read_text(encoding="utf-8"))


def all_tensors(directory):
    tensors = {}
    for path in sorted(Path(directory).glob("*.safetensors")):
        tensors |= load_file(path)
    return tensors


class Interop(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        training.make_deterministic()
        cls.scratch = tempfile.TemporaryDirectory(prefix="remesh-interop-")
        cls.home = Path(cls.scratch.name)
        for name in MODELS:
            steps = [cls.home / f"{name}-{k}" for k in range(3)]
            remesh("convert", FIXTURES / name, steps[0], "--mesh", "tp=2,pp=2")
            remesh("reshard", steps[0], steps[1], "--mesh", "tp=4,dp=2")
            remesh("reshard", steps[1], steps[2], "--mesh", "pp=3")
            remesh("convert", steps[2], cls.home / name, "--to", "hf")
            remesh("convert", steps[2], cls.home / f"{name}-shards", "--to", "hf", "--shard-size", "100kB")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_safetensors_reads_every_file_that_remesh_writes(self):
        for name in MODELS:
            original = all_tensors(FIXTURES / name)
            for made in (self.home / name, self.home / f"{name}-shards"):
                with self.subTest(made.name):
                    found = all_tensors(made)
                    self.assertEqual(found.keys(), original.keys())
                    for key, tensor in original.items():
                        self.assertEqual(found[key].dtype, tensor.dtype)
                        self.assertTrue(torch.equal(found[key], tensor), key)

    def test_remesh_reads_every_dtype_that_safetensors_writes(self):
        kinds = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
                 torch.int8, torch.uint8, torch.bool, torch.uint16, torch.uint32, torch.uint64, torch.complex64,
                 torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz,
                 torch.float8_e8m0fnu]
        generator = torch.Generator().manual_seed(7)
        tensors = {}
        for kind in kinds:
            size = torch.empty((), dtype=kind).element_size()
            high = 2 if kind == torch.bool else 256
            raw = torch.randint(0, high, (6, 5 * size), generator=generator, dtype=torch.uint8)
            tensors[str(kind)] = raw.view(kind)
        tensors["scalar"] = torch.tensor(1.5)
        tensors["empty"] = torch.empty((0, 3))
        source = self.home / "dtypes"
        source.mkdir()
        save_file(tensors, source / "model.safetensors", metadata={"format": "pt"})
        remesh("convert", source, self.home / "dtypes-native", "--mesh", "dp=2")
        remesh("convert", self.home / "dtypes-native", self.home / "dtypes-out", "--to", "hf")
        self.assertEqual((self.home / "dtypes-out/model.safetensors").read_bytes(),
                         (source / "model.safetensors").read_bytes())

    def test_a_cast_is_that_of_torch(self):
        source = self.home / "cast"
        source.mkdir()
        bits = torch.randint(-(2**31), 2**31 - 1, (4096, 16), generator=torch.Generator().manual_seed(9),
                             dtype=torch.int64).to(torch.int32)
        values = bits.view(torch.float32)
        values = torch.where(values.isfinite() & (values.abs() < 3e38), values, torch.zeros_like(values))
        small = torch.where(values.abs() < 65000, values, torch.zeros_like(values))
        save_file({"w": values}, source / "model.safetensors")
        remesh("convert", source, self.home / "cast-bf16", "--to", "hf", "--dtype", "bf16")
        found = load_file(self.home / "cast-bf16/model.safetensors")["w"]
        self.assertTrue(torch.equal(found.view(torch.int16), values.bfloat16().view(torch.int16)))
        save_file({"w": small}, source / "model.safetensors")
        remesh("convert", source, self.home / "cast-f16", "--to", "hf", "--dtype", "f16")
        found = load_file(self.home / "cast-f16/model.safetensors")["w"]
        self.assertTrue(torch.equal(found.view(torch.int16), small.half().view(torch.int16)))

    def test_transformers_loads_it_and_says_what_was_recorded(self):
        for name in MODELS:
            facts = expected(name)
            for made in (self.home / name, self.home / f"{name}-shards"):
                with self.subTest(made.name):
                    model = AutoModelForCausalLM.from_pretrained(made, dtype=torch.float32, attn_implementation="eager")
                    prompt = AutoTokenizer.from_pretrained(made)(facts["prompt"])["input_ids"]
                    self.assertEqual(prompt, facts["prompt_ids"])
                    with torch.no_grad():
                        logits = model(input_ids=torch.tensor([prompt])).logits[0, -1]
                    torch.testing.assert_close(logits, torch.tensor(facts["logits_after_prompt"]), rtol=1e-4, atol=1e-4)

    def test_torch_trains_on_and_repeats_the_recorded_losses(self):
        text = (FIXTURES / "make/text.txt").read_text(encoding="utf-8")
        for name in STATES:
            with self.subTest(name):
                made = self.home / name
                tokenizer = AutoTokenizer.from_pretrained(made)
                tokens = torch.tensor(tokenizer(text, add_special_tokens=False)["input_ids"])
                recorded = expected(name)["next_losses"]
                losses = [loss.hex() for loss in training.Run.load(made).train(tokens, len(recorded))]
                self.assertEqual(losses, recorded)

    def test_another_reader_finds_the_step_and_the_states(self):
        with safe_open(self.home / "llama-state/optimizer.safetensors", "pt") as file:
            self.assertEqual(file.metadata(), {"step": "400"})
            self.assertEqual({key.rpartition("@")[2] for key in file.keys()}, {"master", "exp_avg", "exp_avg_sq"})


if __name__ == "__main__":
    PROGRAM = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
