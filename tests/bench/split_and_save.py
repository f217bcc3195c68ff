#!/usr/bin/env python3
"""What people use today: every tensor is read whole, split and saved, rank after rank.

    split_and_save.py HF_DIRECTORY OUT TP
"""

import json
import sys
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import save_file

COLUMN = ("q_proj.weight", "k_proj.weight", "v_proj.weight", "gate_proj.weight", "up_proj.weight",
          "embed_tokens.weight", "lm_head.weight")
ROW = ("o_proj.weight", "down_proj.weight")


def main(source, out, tp):
    source, out = Path(source), Path(out)
    index = source / "model.safetensors.index.json"
    names = json.loads(index.read_text())["weight_map"] if index.exists() else None
    files = sorted(set(names.values())) if names else ["model.safetensors"]
    out.mkdir()
    for rank in range(int(tp)):
        shard = {}
        for name in files:
            with safe_open(source / name, "pt") as file:
                for key in file.keys():
                    tensor = file.get_tensor(key)
                    dim = 0 if key.endswith(COLUMN) else 1 if key.endswith(ROW) else None
                    shard[key] = tensor if dim is None else tensor.chunk(int(tp), dim)[rank].contiguous()
        save_file(shard, out / f"rank{rank}.safetensors")


if __name__ == "__main__":
    main(*sys.argv[1:])
