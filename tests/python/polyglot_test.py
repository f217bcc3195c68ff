"""`verify --level deep` finds every shard that is one thing to remesh and another to libhdf5.

    polyglot_test.py PROGRAM HF_DIR

Makes a native checkpoint, changes the HDF5 side of a shard with h5py, and seals it again: complement, header, manifest
and COMMIT have the CRCs of the changed file, and the index still leads to the true bytes. So `--level full` finds
nothing, and `--level deep` must, with the right id, exit code 1, and without a crash.
"""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import h5py
import numpy as np

HEADER = 4096
TENSOR = "tensors/model.layers.0.post_attention_layernorm.weight"
MATRIX = "tensors/model.layers.0.mlp.up_proj.weight"


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0xC96C5795D7870F42 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc_table()


def crc(data):
    """CRC-64/XZ."""
    value = 0xFFFFFFFFFFFFFFFF
    for byte in data:
        value = TABLE[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFFFFFFFFFF


def payload_of(data):
    """The (offset, length) of every extent that lies as it is, and of every frame, in file order."""
    index, = struct.unpack_from("<Q", data, 24)
    tensors, extents, blocks, shapes, boxes, _, frames = struct.unpack_from("<7Q", data, index)
    at = index + 56 + 8 * shapes
    offsets, lengths, _, _ = np.frombuffer(data, "<i8", 4 * extents, at).reshape(4, extents)
    at += 8 * (4 * extents + boxes + blocks)
    frame_offsets = np.frombuffer(data, "<i8", frames, at)
    at += 8 * frames + 8 * tensors + 8 * extents
    frame_lengths = np.frombuffer(data, "<u4", frames, at)
    cut = np.frombuffer(data, "u1", extents, at + 4 * frames + 2 * tensors)
    whole = [(int(offset), int(length)) for offset, length, dim in zip(offsets, lengths, cut) if length and dim == 255]
    return sorted(whole + [(int(offset), int(length)) for offset, length in zip(frame_offsets, frame_lengths)])


def seal(checkpoint, name, before):
    """Makes all CRCs those of the shard as it is. Its payload must be what it was `before`."""
    data = bytearray((checkpoint / name).read_bytes())
    rest, at = bytearray(), HEADER
    for offset, length in payload_of(before):
        assert data[offset:offset + length] == before[offset:offset + length], "the change met payload"
        rest += data[at:offset]
        at = offset + length
    rest += data[at:]
    data[:HEADER] = before[:HEADER]
    struct.pack_into("<Q", data, 16, len(data))
    struct.pack_into("<Q", data, 48, crc(rest))
    struct.pack_into("<Q", data, 4088, crc(data[:4088]))
    (checkpoint / name).write_bytes(data)
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    for file in manifest["files"]:
        if file["name"] == name:
            file["header_crc"] = f"crc64xz:{crc(data[:4088]):016x}"
            file["size"] = len(data)
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    (checkpoint / "manifest.json").write_bytes(text)
    (checkpoint / "COMMIT").write_text(f"crc64xz:{crc(text):016x} {len(text)}\n")


# ---- Changes. Each gets an open file, and says which id and which words the report must have.


def plain_list():
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_obj_track_times(False)
    creation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    return creation


def replaced(file, path, change=lambda creation: None, kind=None, dims=None, most=None, fill=lambda new: None):
    """A dataset with other properties in the place of one. The old one goes last, so that none of its bytes is used."""
    old = file[path].id
    creation = plain_list()
    change(creation)
    dims = dims or old.shape
    new = h5py.h5d.create(file.id, b"new", kind or old.get_type(), h5py.h5s.create_simple(dims, most or dims), creation)
    for name in file[path].attrs:
        source = h5py.h5a.open(old, name.encode())
        target = h5py.h5a.create(new, name.encode(), source.get_type(), source.get_space())
        value = np.empty(source.shape, source.dtype)
        source.read(value)
        target.write(value)
    fill(new)
    file.move(path, "old")
    file.move("new", path)
    del file["old"]


def chunked(creation):
    creation.set_layout(h5py.h5d.CHUNKED)
    creation.set_chunk((64,))
    creation.set_alloc_time(h5py.h5d.ALLOC_TIME_INCR)


def unknown_filter(creation, number):
    chunked(creation)
    creation.set_filter(number, h5py.h5z.FLAG_OPTIONAL, (1,))


def outside(file):
    """A pipe to which nobody writes: who opens it waits for ever."""
    path = str(Path(file.filename).parents[1] / "outside")
    if not os.path.exists(path):
        os.mkfifo(path)
    return path


def external(file):
    name = outside(file).encode()
    replaced(file, TENSOR + "/0", lambda creation: creation.set_external(name, 0, h5py.h5f.UNLIMITED))


def soft_link(file):
    file.move(TENSOR + "/0", "/remesh/hidden")
    file[TENSOR + "/0"] = h5py.SoftLink("/remesh/hidden")


def external_link(file):
    del file[TENSOR + "/0"]
    file[TENSOR + "/0"] = h5py.ExternalLink(outside(file), "/x")


def virtual(file):
    layout = h5py.VirtualLayout((64,), "u1", maxshape=(None,))
    source = h5py.VirtualSource(outside(file), "x", (64,), maxshape=(None,))
    layout[:h5py.h5s.UNLIMITED] = source[:h5py.h5s.UNLIMITED]
    del file[TENSOR + "/0"]
    file.create_virtual_dataset(TENSOR + "/0", layout)


def another_dataset(file):
    file[TENSOR].create_dataset("1", data=np.arange(64, dtype="<f4"))


def compact(creation):
    creation.set_layout(h5py.h5d.COMPACT)


def swapped(file):
    one, other = file[MATRIX + "/0"], file[MATRIX.replace("up", "gate") + "/0"]
    one.attrs["remesh_box"] = np.array(other.attrs["remesh_box"]) + 1


def set_text(attributes, name, text):
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(len(text))
    kind.set_cset(h5py.h5t.CSET_UTF8)
    kind.set_strpad(h5py.h5t.STR_NULLPAD)
    del attributes[name]
    attribute = h5py.h5a.create(attributes._id, name.encode(), kind, h5py.h5s.create(h5py.h5s.SCALAR))
    attribute.write(np.array(text.encode()), mtype=kind)


def other_text(file):
    set_text(file[TENSOR + "/0"].attrs, "remesh_dtype", "f16")


def extra_group(file):
    file.create_group("tensors/model.extra")


def extra_attribute(file):
    file[TENSOR + "/0"].attrs["note"] = 7


def group_attribute(file):
    file["tensors"].attrs["note"] = "any text"


def committed_type(file):
    file["kind"] = np.dtype("<f4")


def of_committed_type(file):
    file["kind"] = file[TENSOR + "/0"].id.dtype
    replaced(file, TENSOR + "/0", kind=file["kind"].id)


def missing(file):
    file.move(TENSOR + "/0", "old")
    del file["old"]


def twice(file, name):
    file["tensors/" + name] = file[TENSOR]


def cycle(file):
    file[TENSOR + "/loop"] = file["/"]


def nested(file):
    group = file
    for _ in range(50):
        group = group.create_group("g")


def many_objects(file):
    for number in range(3000):
        file.create_group(f"extra/{number:040}")


def fill_value(creation):
    creation.set_fill_value(np.array(7, "u1"))


def exchanged(file):
    file.move(MATRIX, "/tensors/x")
    file.move(MATRIX.replace("up", "gate"), MATRIX)
    file.move("/tensors/x", MATRIX.replace("up", "gate"))


# Changes of a checkpoint that is packed. The chunk that a new dataset gets is a frame of the old one.


SHUFFLE = (2, (2,))
ZSTD = (32015, (1,))


def repacked(file, filters=(SHUFFLE, ZSTD), chunk=(54, 64), mask=0, write=True):
    """The dataset once more, packed otherwise."""
    _, frame = file[MATRIX + "/0"].id.read_direct_chunk((0, 0))

    def change(creation):
        creation.set_layout(h5py.h5d.CHUNKED)
        creation.set_chunk(chunk)
        creation.set_alloc_time(h5py.h5d.ALLOC_TIME_INCR)
        for number, values in filters:
            creation.set_filter(number, h5py.h5z.FLAG_OPTIONAL, values)

    def fill(new):
        if write:
            new.write_direct_chunk((0, 0), frame, mask)

    replaced(file, MATRIX + "/0", change, fill=fill)


def chunks_exchanged(file):
    """Each of two pieces of one size has the other's frame, by the name of its group."""
    exchanged(file)
    for name in (MATRIX, MATRIX.replace("up", "gate")):
        set_text(file[name + "/0"].attrs, "remesh_tensor", name.removeprefix("tensors/"))


PACKED = [
    ("nothing", lambda file: None, None, ""),
    ("another place", repacked, "RM211",
     "libhdf5 sees frame 0 of /tensors/model.layers.0.mlp.up_proj.weight/0 at 0 0 mask 0"),
    ("another chunk size", lambda file: repacked(file, chunk=(54, 32)), "RM211",
     "chunk = 54 32, but its index says 54 64"),
    ("no shuffling", lambda file: repacked(file, (ZSTD,)), "RM607", "filter 32015"),
    ("no zstd", lambda file: repacked(file, (SHUFFLE,)), "RM211", "filter.1 = nothing"),
    ("filters the other way", lambda file: repacked(file, (ZSTD, SHUFFLE)), "RM607", "filter 32015"),
    ("one more filter", lambda file: repacked(file, (SHUFFLE, ZSTD, (3, ()))), "RM607", "filter 3 "),
    ("another filter", lambda file: repacked(file, (SHUFFLE, (32999, (1,)))), "RM607", "filter 32999"),
    ("another level", lambda file: repacked(file, (SHUFFLE, (32015, (3,)))), "RM211",
     "filter.1 = 32015 flags 1 values 3"),
    ("a mask", lambda file: repacked(file, mask=1), "RM211", " at 0 0 mask 1 "),
    ("no chunk", lambda file: repacked(file, write=False), "RM211", "libhdf5 sees 0 frames"),
    ("frames of each other", chunks_exchanged, "RM211", "libhdf5 sees frame 0 of "),
    ("not packed at all", lambda file: replaced(file, MATRIX + "/0"), "RM211",
     "layout = contiguous, but its index says chunked"),
    ("an external link", external_link, "RM606", "is an external link"),
    ("packed where it should not be", lambda file: replaced(file, TENSOR + "/0", lambda c: unknown_filter(c, 32015)),
     "RM607", "filter 32015"),
]

U16 = h5py.h5t.STD_U16LE
CHANGES = [
    ("nothing", lambda file: None, None, ""),
    ("external storage", external, "RM606", "is a dataset in 1 other files"),
    ("a soft link", soft_link, "RM211", "libhdf5 sees soft-link"),
    ("an external link", external_link, "RM606", "is an external link"),
    ("a virtual dataset", virtual, "RM606", "is a virtual dataset"),
    ("another dataset", another_dataset, "RM211", "sees dataset /tensors/model.layers.0.post_attention_layernorm.weight/1"),
    ("another place", lambda file: replaced(file, TENSOR + "/0"), "RM211", "/0 with offset = "),
    ("zstd", lambda file: replaced(file, TENSOR + "/0", lambda c: unknown_filter(c, 32015)), "RM607", "filter 32015"),
    ("an unknown filter", lambda file: replaced(file, TENSOR + "/0", lambda c: unknown_filter(c, 32999)), "RM607",
     "filter 32999"),
    ("chunks", lambda file: replaced(file, TENSOR + "/0", chunked), "RM211", "layout = chunked"),
    ("another box", swapped, "RM211", "@remesh_box = i64 (2 2) "),
    ("another dtype attribute", other_text, "RM211", "@remesh_dtype = text f16, but its index says text bf16"),
    ("another type", lambda file: replaced(file, TENSOR + "/0", kind=U16), "RM211", "type = u16"),
    ("a big-endian type", lambda file: replaced(file, TENSOR + "/0", kind=h5py.h5t.IEEE_F32BE), "RM211",
     "type = other class 1 bytes 4"),
    ("a compact layout", lambda file: replaced(file, TENSOR + "/0", compact), "RM211", "layout = compact"),
    ("dims the other way", lambda file: replaced(file, MATRIX + "/0", dims=(64, 54)), "RM211", "dims = 64 54"),
    ("huge dims", lambda file: replaced(file, TENSOR + "/0", chunked, dims=(2**62,)), "RM211", f"dims = {2**62}"),
    ("room to grow", lambda file: replaced(file, TENSOR + "/0", chunked, most=(h5py.h5s.UNLIMITED,)), "RM211",
     f"most-dims = {2**64 - 1}"),
    ("a fill value", lambda file: replaced(file, TENSOR + "/0", fill_value, kind=h5py.h5t.STD_U8LE), "RM211",
     "fill = value user"),
    ("an extra group", extra_group, "RM211", "sees group /tensors/model.extra"),
    ("an extra attribute", extra_attribute, "RM211", "@note = i64 (none) 7, but its index says nothing"),
    ("an attribute of a group", group_attribute, "RM211", "/tensors with @note = other"),
    ("a committed type", committed_type, "RM211", "sees committed-type /kind"),
    ("a dataset of a committed type", of_committed_type, "RM211", "type = committed"),
    ("no dataset", missing, "RM211", "does not see [0, 64) of 'model.layers.0.post_attention_layernorm.weight'"),
    ("one object twice, first elsewhere", lambda file: twice(file, "a"), "RM211", "sees another object once more"),
    ("one object twice, then elsewhere", lambda file: twice(file, "z"), "RM211", "links = 2, but its index says 1"),
    ("a cycle", cycle, "RM211", "sees again /tensors/model.layers.0.post_attention_layernorm.weight/loop"),
    ("tensors under each other's name", exchanged, "RM211", "@remesh_tensor = text model.layers.0.mlp.gate_proj.weight"),
    ("groups without end", nested, "RM211", "its groups are nested 8 deep and more"),
    ("more than the index can mean", many_objects, "RM211", "longer than that of all that the index has"),
]


def overwrite(data, begin, end, value):
    data[begin:end] = value[:end - begin]


def metadata_end(data):
    """Where index or payload begins: what lies before is libhdf5's alone."""
    index, = struct.unpack_from("<Q", data, 24)
    return min([index] + [offset for offset, _ in payload_of(data)])


def garbage(data):
    """All metadata behind the superblock."""
    overwrite(data, HEADER + 96, metadata_end(data), np.random.default_rng(7).bytes(len(data)))


def flipped(seed):
    def change(data):
        generator = np.random.default_rng(seed)
        data[int(generator.integers(HEADER, metadata_end(data)))] ^= 1 << int(generator.integers(8))
    return change


# Changes of bytes. Of a flipped bit nothing is asked but an answer: it may be one that libhdf5 does not look at.
BYTES = [
    ("no superblock", lambda data: overwrite(data, HEADER, HEADER + 8, b"\0" * 8), "RM211", "libhdf5 says: H5Fopen: "),
    ("a superblock of another version", lambda data: overwrite(data, HEADER + 8, HEADER + 9, b"\xff"), "RM211",
     "libhdf5 says: "),
    ("metadata of random bytes", garbage, "RM211", "libhdf5 says: "),
    *[(f"a flipped bit, seed {seed}", flipped(seed), "any", "") for seed in range(12)],
]


def change_with_h5py(path, change):
    with h5py.File(path, "r+", libver=("v110", "v110")) as file:
        change(file)


def change_bytes(path, change):
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)


def verify(program, checkpoint, level):
    """Where libhdf5 would look for plug-ins is a pipe of that kind of name: who opens it waits for ever."""
    plugins = checkpoint.parent / "plugins"
    if not plugins.exists():
        plugins.mkdir()
        os.mkfifo(plugins / "libfilter.so")
    return subprocess.run([program, "verify", checkpoint, "--level", level, "-v"], capture_output=True, text=True,
                          timeout=120, env={**os.environ, "HDF5_PLUGIN_PATH": str(plugins)})


def problem_of(program, checkpoint, change, expected, words):
    """What is wrong with the program's answer; empty if nothing is."""
    name = "shard-00000-of-00004.h5"
    before = (checkpoint / name).read_bytes()
    try:
        change(checkpoint / name)
        seal(checkpoint, name, before)
    except Exception:
        return traceback.format_exc()
    full = verify(program, checkpoint, "full")
    if full.returncode != 0:
        return f"full: exit {full.returncode}, so the change was not sealed\n{full.stdout}{full.stderr}"
    deep = verify(program, checkpoint, "deep")
    if expected == "any":
        return "" if deep.returncode in (0, 1) else f"exit {deep.returncode}\n{deep.stderr}"
    if deep.returncode != (1 if expected else 0):
        return f"exit {deep.returncode}\n{deep.stdout}{deep.stderr}"
    if expected and expected not in deep.stdout or words not in deep.stdout:
        return f"no {expected} '{words}' in\n{deep.stdout}{deep.stderr}"
    return ""


def main(program, source):
    program = os.path.abspath(program)
    rows = [(packed, title, lambda path, change=change: change_with_h5py(path, change), expected, words)
            for packed, changes in (("", CHANGES), ("packed: ", PACKED)) for title, change, expected, words in changes]
    rows += [(packed, title, lambda path, change=change: change_bytes(path, change), expected, words)
             for packed in ("", "packed: ") for title, change, expected, words in BYTES]
    failures = 0
    with tempfile.TemporaryDirectory(prefix="remesh-polyglot-") as scratch:
        honest = {"": Path(scratch, "honest"), "packed: ": Path(scratch, "honest-packed")}
        for packed, path in honest.items():
            subprocess.run([program, "convert", source, path, "--mesh", "tp=2,pp=2", "-q",
                            *(["--compress", "zstd"] if packed else [])], check=True, stdout=subprocess.DEVNULL)
        for packed, title, change, expected, words in rows:
            checkpoint = Path(scratch, "changed")
            shutil.copytree(honest[packed], checkpoint)
            problem = problem_of(program, checkpoint, change, expected, words)
            if problem:
                failures += 1
                print(f"FAILED   {packed}{title}: {problem}")
            shutil.rmtree(checkpoint)
    print(f"{len(rows) - failures} of {len(rows)} shards were judged rightly")
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
