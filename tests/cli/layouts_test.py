"""Every layout in a row: whole training states through many meshes, and back byte for byte.

usage: layouts_test.py PROGRAM SOURCE_DIR

Each checkpoint on the way is judged by itself and against the first.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
FIXTURES = SOURCE / "fixtures"

# A file of a mesh is written by its text.
MEGATRON = """mesh = "tp=2,dp=2"
zero = 1
[line]
align = 64
bucket = 4000
pad = 128
reversed = true
"""
BY_LAYER = """stages = [3, "*"]
zero = 3
[mesh]
dp = 3
pp = 2
[line]
unit = "layer"
"""

# What a user may say of this model: any tp, uneven ones too.
RULES = """
[model]
name = "any tp"
layers = 7
""" + "".join(f"""
[[tensor]]
name = "model.layers.{{layer}}.self_attn.{name}.weight"
split = {{dim = {dim}, groups = {groups}, divide = true, rule = "chunk", unit = "heads"}}
""" for name, dim, groups in (("q_proj", 0, 8), ("k_proj", 0, 4), ("v_proj", 0, 4), ("o_proj", 1, 8))) + """
[[tensor]]
name = "model.embed_tokens.weight"
split = {dim = 0, rule = "chunk", block = 128, unit = "vocabulary"}
stage = "first"
[[tensor]]
name = "lm_head.weight"
split = {dim = 0, rule = "chunk", block = 128, unit = "vocabulary"}
stage = "last"
[[tensor]]
name = "model.norm.weight"
stage = "last"
""" + "".join(f"""
[[tensor]]
name = "model.layers.{{layer}}.{name}.weight"
{split}
""" for name, split in (("mlp.gate_proj", "split = {dim = 0, parts = [{size = 60}, {size = 40}]}"),
                        ("mlp.up_proj", "split = {dim = 0, block = 4}"), ("mlp.down_proj", "split = {dim = 1}"),
                        ("input_layernorm", ""), ("post_attention_layernorm", "")))

# 7 layers, 8 heads, 4 KV groups, vocabulary 515.
DENSE = [
    "--mesh tp=2,pp=2",
    "--mesh dp=2 --zero 1",                                # ZeRO-1, flat
    "--mesh dp=3 --zero 3",                                # ZeRO-3 by chunks: FSDP2; 3 ranks
    "--mesh tp=2,dp=3 --zero 3",                           # FSDP(3) behind TP(2); 6 ranks
    "--mesh tp=2,dp=3 --zero 3 --shard-rule flat",         # ZeRO-3 as DeepSpeed has it
    "--mesh tp=4,dp=3 --zero 1",                           # 12 ranks
    "--mesh same,dp=1,pp=3",                               # the lines stay, of one range each
    "--mesh pp=3 --stages 1,5,1 --zero 0",                 # uneven
    "--mesh pp=5",                                         # 5 ranks
    "--mesh pp=7",                                         # 7 ranks
    "--mesh pp=3 --stages balanced",
    "--mesh pp=3,tp=2 --stages cost",
    "--mesh pp=2,vpp=2",
    "--mesh pp=3,vpp=2,dp=2 --zero 1",                     # 6 ranks
    "--mesh pp=2,vpp=2 --stages Et|tt|t*3|tL --zero 2 --shard-rule chunk",
    "--mesh tp=8",                                         # TP above the KV groups
    "--mesh tp=8,dp=2 --zero 1",                           # replicas that are cut at other places
    "--mesh tp=8,dp=3 --zero 3",
    "--mesh cp=2,dp=2,tp=2 --zero 1",
    "--mesh cp=3,dp=2 --zero 3 --shard-rule flat",
    "--mesh same,order=dp-cp-tp-pp",
    "--mesh dp=5 --zero 3",
    "--mesh dp=7 --zero 1",
    "--mesh tp=2,pp=3,dp=2,order=pp-dp-tp-cp --zero 2",    # 12 ranks
    "--mesh @megatron.toml",
    "--mesh @by_layer.toml",
    "--mesh same,dp=4",
    "--mesh dp=64 --zero 3",                               # empty shards
    "--mesh tp=2,dp=2 --zero 3 --copies 2",
    "--mesh tp=3,pp=2 --rules rules.toml",                 # parts, sizes, and KV groups that are cut
    "--mesh tp=5,dp=2 --rules rules.toml --zero 3",
    "--mesh tp=8,cp=3,dp=2,order=cp-tp-dp-pp --zero 1",
    "--mesh dp=11 --zero 3 --shard-rule flat",
    "--mesh tp=2,dp=5 --zero 2",                           # 10 ranks
    "--mesh pp=7,dp=2 --zero 3",
    "--mesh pp=3,vpp=2 --stages 0,2,1,1,2,1",              # a stage without a layer
    "--mesh @by_layer.toml --zero 1",
    "--mesh same,tp=2",
    "--mesh like:START",
    "--mesh tp=1 --zero 0",
]
assert len(DENSE) >= 40

# 5 layers, 4 heads, 2 KV groups, 8 experts in each layer, a shared one.
MIXTURE = [
    "--mesh tp=2,pp=2",
    "--mesh dp=2,ep=2",
    "--mesh dp=4,ep=4",
    "--mesh dp=8,ep=8",
    "--mesh tp=2,dp=2,ep=4",                               # experts on all ranks, not split by tp
    "--mesh tp=2,dp=2,ep=2,etp=2",
    "--mesh tp=4,ep=2,etp=2",                              # TP above the KV groups
    "--mesh tp=1,dp=6,ep=2 --zero 1",                      # edp 3
    "--mesh dp=6,ep=2 --zero 3",
    "--mesh dp=4,ep=2 --zero 3 --shard-rule flat",
    "--mesh pp=5,dp=2,ep=2",
    "--mesh pp=5",                                         # 5 ranks, experts as all else
    "--mesh pp=3,ep=1",                                    # 3 ranks
    "--mesh pp=2,vpp=2,dp=2,ep=2 --zero 1",
    "--mesh tp=2,cp=2,dp=3,ep=4,etp=1 --zero 1",           # 12 ranks, edp 3
    "--mesh tp=2,dp=4,ep=4,order=tp-cp-pp-ep-dp",
    "--mesh tp=2,dp=4,ep=4,pp=2 --stages cost",
    "--mesh dp=7 --zero 3",                                # 7 ranks
    "--mesh tp=4,dp=2,ep=8 --zero 2 --shard-rule chunk",
    "--mesh dp=3,ep=1 --zero 3",                           # 3 ranks
    "--mesh tp=2,dp=3,ep=2 --zero 3",                      # FSDP(3) behind TP(2) and EP(2)
    "--mesh tp=2,dp=3,ep=2,etp=1 --zero 3 --shard-rule flat",
    "--mesh @megatron.toml",
    "--mesh same,ep=4",
    "--mesh dp=12,ep=4 --zero 1",                          # 12 ranks
    "--mesh dp=12,ep=4 --zero 3",
    "--mesh tp=4,etp=4,pp=2",
    "--mesh tp=4,dp=2,etp=2,ep=2,pp=2 --zero 2",
    "--mesh cp=2,dp=2,ep=4,order=dp-cp-ep-tp-pp --zero 1",
    "--mesh pp=5,dp=2,ep=2 --zero 3",                      # 10 ranks
    "--mesh pp=2,vpp=2,ep=2,tp=2 --stages E|tt|t|ttL",
    "--mesh @by_layer.toml",
    "--mesh same,dp=4,ep=2",
    "--mesh dp=5 --zero 1",                                # 5 ranks
    "--mesh dp=6,ep=2 --zero 2 --shard-rule chunk --copies 2",
    "--mesh pp=3,dp=4,ep=2 --stages balanced --zero 1",    # 12 ranks
    "--mesh tp=2,dp=4,ep=8 --zero 3",
    "--mesh tp=1,dp=2,ep=2",
    "--mesh like:START",
    "--mesh tp=1 --zero 0",
]
assert len(MIXTURE) >= 40


def remesh(directory, *arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments), "-q"], capture_output=True, text=True,
                          cwd=directory)
    if done.returncode != 0:
        raise AssertionError(f"remesh {' '.join(map(str, arguments))}: exit {done.returncode}\n"
                             f"{done.stdout}{done.stderr}")


def files_below(directory):
    return {str(path.relative_to(directory)): path.read_bytes()
            for path in sorted(pathlib.Path(directory).rglob("*")) if path.is_file()}


class Layouts(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="remesh-layouts-"))
        self.addCleanup(shutil.rmtree, self.directory)
        (self.directory / "megatron.toml").write_text(MEGATRON)
        (self.directory / "by_layer.toml").write_text(BY_LAYER)
        (self.directory / "rules.toml").write_text(RULES)

    def walk(self, fixture, steps):
        hf = FIXTURES / fixture
        remesh(self.directory, "convert", hf, "start", "--mesh", "tp=2,pp=2,dp=2")
        before = "start"
        for number, step in enumerate(steps):
            now = f"ck{number}"
            remesh(self.directory, "reshard", before, now, *step.replace("START", "start").split())
            remesh(self.directory, "verify", now, "--against", hf)  # and of itself, at level full
            if before != "start":
                shutil.rmtree(self.directory / before)
            before = now
        remesh(self.directory, "convert", before, "out", "--to", "hf", "--read-back")
        self.assertEqual(files_below(self.directory / "out"), files_below(hf))

    def test_a_dense_model_with_its_optimizer(self):
        self.walk("llama-state", DENSE)

    def test_a_mixture_of_experts_with_its_optimizer(self):
        self.walk("moe-state", MIXTURE)

    def test_every_way_leads_from_hugging_face_too(self):
        for options in ("--mesh tp=2,dp=3 --zero 3", "--mesh pp=2,vpp=2 --stages 1,*,2 --zero 1",
                        "--mesh @megatron.toml"):
            with self.subTest(options):
                remesh(self.directory, "convert", FIXTURES / "llama-state", "ck", *options.split())
                remesh(self.directory, "verify", "ck", "--against", FIXTURES / "llama-state")
                remesh(self.directory, "convert", "ck", "back", "--to", "hf")
                self.assertEqual(files_below(self.directory / "back"),
                                 files_below(FIXTURES / "llama-state"))
                shutil.rmtree(self.directory / "ck")
                shutil.rmtree(self.directory / "back")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
