#!/usr/bin/env python3
"""Training states in safetensors directories, for tests: read, changed, stepped, written. numpy alone, no remesh.

    states.py step SOURCE DESTINATION [STEPS]    the state after so many more steps of AdamW
    states.py edit DIRECTORY CODE                runs CODE, in which `t` maps names to arrays

In `t` bf16 stands as float32, and is rounded to nearest, ties to even, when it is written. A step takes its
gradients from a seed, as large as the second moments say that they are.
"""

import json
import math
import shutil
import struct
import sys
from pathlib import Path

import numpy as np

WIDTHS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "F8_E4M3": "<u1", "F8_E5M2": "<u1", "I64": "<i8",
          "I32": "<i4", "U8": "<u1", "I8": "<i1", "BOOL": "<u1"}


def widened(words):
    """bf16 as float32."""
    return (words.astype(np.uint32) << 16).view(np.float32)


def rounded(values):
    """float32 as bf16, to nearest, ties to even."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    words = values.view(np.uint32).astype(np.uint64)
    near = ((words + 0x7FFF + ((words >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), (words >> 16).astype(np.uint16) | 0x40, near).astype(np.uint16)


class File:
    """One safetensors file: `tensors` maps names to arrays, `dtypes` to what they are in the file."""

    def __init__(self, path=None):
        self.tensors, self.dtypes, self.metadata = {}, {}, {}
        if path is None:
            return
        data = Path(path).read_bytes()
        length, = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + length])
        self.metadata = header.pop("__metadata__", {})
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            values = np.frombuffer(data[8 + length + begin:8 + length + end], WIDTHS[entry["dtype"]])
            values = values.reshape(entry["shape"])
            self.dtypes[name] = entry["dtype"]
            self.tensors[name] = widened(values) if entry["dtype"] == "BF16" else values.copy()

    def put(self, name, dtype, values):
        self.dtypes[name], self.tensors[name] = dtype, values

    def drop(self, name):
        del self.dtypes[name], self.tensors[name]

    def write(self, path):
        header, parts, at = {}, [], 0
        if self.metadata:
            header["__metadata__"] = self.metadata
        for name in sorted(self.tensors):
            values, dtype = self.tensors[name], self.dtypes[name]
            stored = rounded(values) if dtype == "BF16" else np.asarray(values, WIDTHS[dtype])
            part = np.ascontiguousarray(stored).tobytes()
            header[name] = {"dtype": dtype, "shape": list(np.shape(values)), "data_offsets": [at, at + len(part)]}
            parts.append(part)
            at += len(part)
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


class State:
    """A directory: its weights, optimizer (or None) and trainer_state.json (or None)."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.weights = File(self.directory / "model.safetensors")
        optimizer, trainer = self.directory / "optimizer.safetensors", self.directory / "trainer_state.json"
        self.optimizer = File(optimizer) if optimizer.exists() else None
        self.trainer = json.loads(trainer.read_text()) if trainer.exists() else None

    def file_of(self, name):
        return self.weights if name in self.weights.tensors else self.optimizer

    def __getitem__(self, name):
        return self.file_of(name).tensors[name]

    def __setitem__(self, name, values):
        self.file_of(name).tensors[name] = values

    def names(self):
        return [*self.weights.tensors, *(self.optimizer.tensors if self.optimizer else [])]

    def config(self):
        return json.loads((self.directory / "config.json").read_text())

    def write(self, directory):
        """Writes all files to `directory`, which may be its own."""
        directory = Path(directory)
        if directory != self.directory:
            shutil.copytree(self.directory, directory)
        self.weights.write(directory / "model.safetensors")
        if self.optimizer:
            self.optimizer.write(directory / "optimizer.safetensors")
        if self.trainer:
            (directory / "trainer_state.json").write_text(json.dumps(self.trainer))

    def say_step(self, step):
        if self.optimizer:
            self.optimizer.metadata["step"] = str(step)
        if self.trainer:
            self.trainer["step"] = step

    def adamw(self, random):
        """One step of AdamW on the masters; the weights are these, rounded."""
        step = self.trainer["step"] + 1
        for group in self.trainer["param_groups"]:
            beta1, beta2 = group["betas"]
            for name in group["params"]:
                master, mean = self[f"{name}@master"], self[f"{name}@exp_avg"]
                square = self[f"{name}@exp_avg_sq"]
                gradient = random.standard_normal(master.shape).astype(np.float32) * np.sqrt(square)
                mean = beta1 * mean + (1 - beta1) * gradient
                square = beta2 * square + (1 - beta2) * gradient * gradient
                update = mean / (1 - beta1**step) / (np.sqrt(square / (1 - beta2**step)) + group["eps"])
                master = master - group["lr"] * (update + group["weight_decay"] * master)
                values = {"": master, "@master": master, "@exp_avg": mean, "@exp_avg_sq": square}
                for state, value in values.items():
                    self[name + state] = value.astype(np.float32)
        self.say_step(step)


def stepped(source, steps=1, seed=1):
    state = State(source)
    random = np.random.default_rng(seed)
    for _ in range(steps):
        state.adamw(random)
    return state


def edit(directory, code):
    state = State(directory)
    exec(code, {"t": state, "np": np, "state": state, "math": math})
    state.write(directory)


if __name__ == "__main__":
    if sys.argv[1] == "step":
        stepped(sys.argv[2], int((sys.argv[4:] or ["1"])[0])).write(Path(sys.argv[3]))
    else:
        edit(Path(sys.argv[2]), sys.argv[3])
