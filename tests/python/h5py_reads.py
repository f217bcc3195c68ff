"""Reads a native checkpoint with h5py alone and compares it with the Hugging Face directory that it came from.

    h5py_reads.py CHECKPOINT HF_DIR

Rebuilds every whole tensor from its boxes (datasets /tensors/<percent-encoded name>/<k> of shard-RRRRR-of-NNNNN.h5) and
asks for the same names and exactly the same values. Exits 1 on a difference, a hole or an overlap.
"""

import re
import sys
from pathlib import Path
from urllib.parse import unquote

import h5py
import numpy as np
from forward import read_directory


class Mismatch(Exception):
    """What the checkpoint says that it should not."""


def require(condition, complaint):
    if not condition:
        raise Mismatch(complaint)


def shard_paths(checkpoint):
    """The shard files in order; ranks may be absent, but all must name the same number of them."""
    found = [re.fullmatch(r"shard-(\d{5})-of-(\d{5})\.h5", path.name) for path in sorted(checkpoint.iterdir())]
    names = [match for match in found if match]
    require(names, f"{checkpoint}: no shard files")
    require(len({match[2] for match in names}) == 1, f"{checkpoint}: shards of different totals")
    require(all(match[1] < match[2] for match in names), f"{checkpoint}: a shard's number exceeds the total")
    return [checkpoint / match[0] for match in names]


def text(attribute):
    return attribute.decode() if isinstance(attribute, bytes) else str(attribute)


def boxes(path):
    """Every (name, dtype, box, values) that one shard stores."""
    with h5py.File(path, "r") as file:
        for encoded, group in file["tensors"].items():
            for dataset in group.values():
                name = text(dataset.attrs["remesh_tensor"])
                require(unquote(encoded) == name, f"{dataset.name}: remesh_tensor is {name}")
                box = np.asarray(dataset.attrs.get("remesh_box", []), np.int64).reshape(-1, 2)  # a scalar has none
                require(dataset.shape == tuple(box[:, 1] - box[:, 0]), f"{dataset.name}: shape is not that of its box")
                yield name, text(dataset.attrs["remesh_dtype"]), box, dataset[()]


class Tensor:
    """A tensor under reconstruction, and how often each of its elements was stored."""

    def __init__(self, shape):
        self.values = np.zeros(shape, np.float32)
        self.times = np.zeros(shape, np.uint8)

    def place(self, name, box, values):
        require(values.dtype == np.float32, f"{name}: h5py reads {values.dtype}, not float32")
        inside = len(box) == self.values.ndim and (box[:, 0] >= 0).all() and (box[:, 1] <= self.values.shape).all()
        require(inside, f"{name}: box {box.tolist()} lies outside {self.values.shape}")
        where = tuple(slice(begin, end) for begin, end in box)
        require(not self.times[where].any(), f"{name}: box {box.tolist()} overlaps another")
        self.times[where] += 1
        self.values[where] = values


def rebuild(checkpoint, shapes):
    """Every whole tensor of the checkpoint, each element stored exactly once."""
    tensors = {name: Tensor(shape) for name, shape in shapes.items()}
    seen = set()
    for path in shard_paths(checkpoint):
        for name, dtype, box, values in boxes(path):
            require(name in tensors, f"{name}: not in the Hugging Face directory")
            require(dtype in ("bf16", "f32"), f"{name}: dtype {dtype} is neither bf16 nor f32")
            tensors[name].place(name, box, values)
            seen.add(name)
    for name, tensor in tensors.items():
        require(name in seen and tensor.times.all(), f"{name}: {np.count_nonzero(tensor.times == 0)} elements missing")
    return {name: tensor.values for name, tensor in tensors.items()}


def compare(checkpoint, directory):
    """The number of tensors, all of which have the same bits in both places."""
    source = read_directory(directory)
    stored = rebuild(checkpoint, {name: values.shape for name, values in source.items()})
    for name, values in source.items():
        differing = np.count_nonzero(stored[name].view(np.uint32) != values.view(np.uint32))
        require(not differing, f"{name}: {differing} elements differ")
    return len(source)


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    try:
        print(f"h5py: {compare(*map(Path, arguments))} tensors equal")
    except Mismatch as mismatch:
        sys.exit(f"h5py: {mismatch}")


if __name__ == "__main__":
    main(sys.argv[1:])
