"""Writes checkpoints by the page alone, and changes them on the way, to test their readers with."""

import ctypes
import hashlib
import itertools
import json
import math
import os
import shutil
import struct
import sys
from pathlib import Path

import h5py
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "fixtures/make"))

from reference_basics import BITS, CODE  # noqa: E402
from reference_crc import crc64, crc_text  # noqa: E402, F401
from reference_shard import MAGIC  # noqa: E402
from reference_view import link_name  # noqa: E402

ZSTD = ctypes.CDLL("libzstd.so.1")
ZSTD.ZSTD_compress.restype = ctypes.c_size_t
ZSTD.ZSTD_compress.argtypes = [
    ctypes.c_char_p,
    ctypes.c_size_t,
    ctypes.c_char_p,
    ctypes.c_size_t,
    ctypes.c_int,
]


def compress(data):
    out = ctypes.create_string_buffer(len(data) + 1000)
    size = ZSTD.ZSTD_compress(out, len(out), data, len(data), 3)
    return out.raw[:size]


def text(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def take(data, tensor, box):
    """Bytes of a box; data has the tensor's elements as bytes, or as bits where packed."""
    part = np.ascontiguousarray(data[tuple(slice(b, e) for b, e in box)])
    if BITS[tensor["dtype"]] % 8:
        return np.packbits(part.reshape(-1), bitorder="little").tobytes()
    return part.tobytes()


def random_data(tensor, rng, compressible=False):
    bits = BITS[tensor["dtype"]]
    shape = (*tensor["shape"], bits if bits % 8 else bits // 8)
    high = 2 if bits % 8 else 256
    values = np.array(
        (
            [rng.randrange(high) for _ in range(math.prod(shape))]
            if math.prod(shape) < 3000
            else np.random.default_rng(rng.randrange(2**32)).integers(0, high, math.prod(shape))
        ),
        np.uint8,
    )
    values = values.reshape(shape)
    if compressible:
        values[..., 1:] = 7
    return values


def hdf5_type(dtype):
    if dtype == "bf16":
        kind = h5py.h5t.IEEE_F16LE.copy()
        kind.set_fields(15, 7, 8, 0, 7)
        kind.set_ebias(127)
        return kind
    if dtype == "c64":
        kind = h5py.h5t.create(h5py.h5t.COMPOUND, 8)
        kind.insert(b"r", 0, h5py.h5t.IEEE_F32LE)
        kind.insert(b"i", 4, h5py.h5t.IEEE_F32LE)
        return kind
    if dtype in ("f16", "f32", "f64"):
        return getattr(h5py.h5t, f"IEEE_F{dtype[1:]}LE")
    if dtype[0] in "iu" and dtype[1:].isdigit():
        return getattr(h5py.h5t, f"STD_{dtype[0].upper()}{dtype[1:]}LE")
    return h5py.h5t.STD_U8LE


def attribute(dataset, name, value):
    if isinstance(value, str):
        kind = h5py.h5t.C_S1.copy()
        kind.set_size(len(value.encode()))
        kind.set_strpad(h5py.h5t.STR_NULLPAD)
        kind.set_cset(h5py.h5t.CSET_UTF8)
        a = h5py.h5a.create(dataset, name.encode(), kind, h5py.h5s.create(h5py.h5s.SCALAR))
        a.write(np.array(value.encode()), mtype=kind)
    else:
        a = h5py.h5a.create(
            dataset, name.encode(), h5py.h5t.STD_I64LE, h5py.h5s.create_simple(value.shape)
        )
        a.write(value.astype("<i8"))


COLUMNS = [
    ("shapes", "q"),
    ("offsets", "q"),
    ("lengths", "q"),
    ("first", "q"),
    ("chunks", "q"),
    ("boxes", "q"),
    ("crcs", "Q"),
    ("frame_at", "q"),
    ("numbers", "I"),
    ("name_sizes", "I"),
    ("owners", "I"),
    ("copies", "I"),
    ("frame_sizes", "I"),
    ("dtypes", "B"),
    ("dims", "B"),
    ("chunk_dims", "B"),
    ("kinds", "B"),
]


def pack_index(c):
    counts = c.get("counts") or [
        len(c[k]) for k in ("numbers", "offsets", "crcs", "shapes", "boxes", "names", "frame_at")
    ]
    raw = struct.pack("<7Q", *counts)
    for name, kind in COLUMNS:
        raw += struct.pack(f"<{len(c[name])}{kind}", *c[name])
    raw += c["names"]
    return raw + bytes(-len(raw) % 8)


def plist(chunk=None):
    """How a dataset is made."""
    p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    p.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    p.set_obj_track_times(False)
    if chunk:
        p.set_chunk(chunk)
        p.set_shuffle()
        p.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, (1,))
    else:
        p.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    return p


def write_frames(ds, number, content, dim, size, width, hook):
    """Writes an extent in chunks; returns [offset, bytes, kind, content] of each frame."""
    dims = ds.shape
    chunk = (1,) * dim + (size,) + dims[dim + 1 :]
    row = math.prod(dims[dim + 1 :]) * width
    whole, frames, at = size * row, [], 0
    for start in itertools.product(*(range(0, n, c) for n, c in zip(dims, chunk))):
        have = min(size, dims[dim] - start[dim]) * row
        plain = content[at : at + have] + hook("padding", number, bytes(whole - have))
        at += have
        packed = compress(np.frombuffer(plain, np.uint8).reshape(-1, width).T.tobytes())
        packed = hook("frame", number, packed)
        kind, stored = (0, packed) if len(packed) < whole else (1, plain)
        ds.write_direct_chunk(start, stored, 3 * kind)
        info = ds.get_chunk_info_by_coord(start)
        frames.append([info.byte_offset, info.size, kind, stored])
    return frames


def write_hdf5(path, tensors, items, data, hook):
    """The HDF5 file, its index empty; returns extents, frames by extent, and the index's offset."""
    create = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    create.set_userblock(4096)
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_libver_bounds(h5py.h5f.LIBVER_V110, h5py.h5f.LIBVER_V110)
    file = h5py.h5f.create(path.encode(), h5py.h5f.ACC_TRUNC, create, access)
    items = sorted(items)
    groups, counters, placed, frames_of, sets = {}, {}, [], {}, {}

    remesh, holder = h5py.h5g.create(file, b"remesh"), h5py.h5g.create(file, b"tensors")
    for number, box, copy, dim, size in items:
        t = tensors[number]
        if number not in groups:
            groups[number] = h5py.h5g.create(
                holder, hook("group", number, link_name(t["name"])).encode()
            )
        k = counters[number] = counters.get(number, -1) + 1
        dims = tuple(e - b for b, e in box)
        content = take(data[number], t, box)
        shown = dims if BITS[t["dtype"]] % 8 == 0 else (len(content),)
        shown = hook("dims", number, shown)
        space = h5py.h5s.create_simple(shown) if shown else h5py.h5s.create(h5py.h5s.SCALAR)
        kind = hook("type", number, hdf5_type(t["dtype"]))
        chunk = None if dim is None else (1,) * dim + (size,) + dims[dim + 1 :]
        if hook("external", number, False):
            p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            p.set_external(b"/etc/passwd", 0, len(content))
            h5py.h5d.create(groups[number], str(k).encode(), kind, space, p)
            placed.append(
                (None, number, box, copy, content, dim, size)
            )  # its bytes go behind the rest
            continue
        ds = h5py.h5d.create(
            groups[number], str(k).encode(), kind, space, hook("plist", number, plist(chunk))
        )
        sets[number, k] = ds
        for name, value in hook(
            "attributes", number, {"remesh_tensor": t["name"], "remesh_dtype": t["dtype"]}
        ).items():
            attribute(ds, name, value)
        if dims:
            attribute(ds, "remesh_box", hook("box", number, np.array(box)))
        if BITS[t["dtype"]] % 8:
            attribute(ds, "remesh_shape", np.array(dims))
        if chunk is None:
            if content:
                placed.append((ds.get_offset(), number, box, copy, content, dim, size))
            else:
                placed.append((0, number, box, copy, content, dim, size))
            continue
        frames = write_frames(ds, number, content, dim, size, BITS[t["dtype"]] // 8, hook)
        frames_of[number, box, copy] = frames
        placed.append((frames[0][0], number, box, copy, content, dim, size))
    hook("hdf5", file, sets)
    numbers = sorted({i[0] for i in items})
    blocks = sum(
        len(frames_of.get((p[1], p[2], p[3]), ())) if p[5] is not None else -(-len(p[4]) // 2**20)
        for p in placed
    )
    frames = sum(map(len, frames_of.values()))
    dims_of = [len(tensors[n]["shape"]) for n in numbers]
    names = [tensors[n]["name"].encode() for n in numbers]
    size = (
        56
        + 8 * sum(dims_of)
        + 32 * len(placed)
        + 16 * sum(len(p[2]) for p in placed)
        + 8 * blocks
        + 8 * frames
        + 10 * len(numbers)
        + 9 * len(placed)
        + 5 * frames
        + sum(map(len, names))
    )
    size += -size % 8
    ds = h5py.h5d.create(
        remesh, b"index", h5py.h5t.STD_U8LE, h5py.h5s.create_simple((size,)), plist()
    )
    index_at = ds.get_offset()
    del ds, sets, groups, remesh, holder
    file.close()
    h5py.h5f.get_obj_count(h5py.h5f.OBJ_ALL, h5py.h5f.OBJ_ALL)
    with open(path, "rb") as f:
        raw = bytearray(f.read())
    for i, p in enumerate(placed):
        if p[0] is None:
            placed[i] = (len(raw), *p[1:])
            raw += p[4]
    # whether addresses of chunks count the user block depends on the release of HDF5
    for found in frames_of.values():
        base = next(
            x
            for x in (4096, 0)
            if raw[found[0][0] + x : found[0][0] + x + found[0][1]] == found[0][3]
        )
        found[:] = [(at + base, size, kind) for at, size, kind, _ in found]
    placed = [(frames_of[p[1:4]][0][0] if p[5] is not None else p[0], *p[1:]) for p in placed]
    placed.sort(key=lambda p: p[:4])
    for p in placed:
        if p[5] is None and p[4]:
            raw[p[0] : p[0] + len(p[4])] = p[4]
    hook("payload", raw, placed)
    return raw, placed, frames_of, index_at


def write_shard(path, rank, ranks, save_id, tensors, items, data, hook):
    """items: (tensor number, box, copy, chunk dim or None, chunk size); returns CRC and size."""
    raw, placed, frames_of, index_at = write_hdf5(path, tensors, items, data, hook)
    numbers = sorted({i[0] for i in items})
    names = [tensors[n]["name"].encode() for n in numbers]
    c = {name: [] for name, _ in COLUMNS}
    c.update(
        names=b"".join(names),
        numbers=numbers,
        dims=[len(tensors[n]["shape"]) for n in numbers],
        name_sizes=[len(n) for n in names],
        dtypes=[CODE[tensors[n]["dtype"]] for n in numbers],
        shapes=[x for n in numbers for x in tensors[n]["shape"]],
    )
    used = []
    for offset, number, box, copy, content, dim, size in placed:
        c["first"].append(len(c["crcs"]))
        c["offsets"].append(offset)
        c["lengths"].append(len(content))
        c["chunks"].append(size if dim is not None else 0)
        c["chunk_dims"].append(dim if dim is not None else 255)
        c["boxes"] += [x for r in box for x in r]
        c["owners"].append(numbers.index(number))
        c["copies"].append(copy)
        if dim is None:
            spans = [
                (o, min(o + 2**20, offset + len(content)))
                for o in range(offset, offset + len(content), 2**20)
            ]
        else:
            spans = [(o, o + n) for o, n, _ in frames_of[number, box, copy]]
            for o, n, kind in frames_of[number, box, copy]:
                c["frame_at"].append(o)
                c["frame_sizes"].append(n)
                c["kinds"].append(kind)
        c["crcs"] += [crc64(bytes(raw[b:e])) for b, e in spans]
        used += spans
    hook("columns", rank, c)
    index = pack_index(c)
    index = hook("index", rank, index)
    raw[index_at : index_at + len(index)] = index
    hook("tail", raw, index_at)
    used = sorted(used) + [(len(raw), 0)]
    complement = bytes(raw[4096 : used[0][0]]) + b"".join(
        bytes(raw[a[1] : b[0]]) for a, b in zip(used, used[1:])
    )
    head = bytearray(4096)
    struct.pack_into(
        "<8sIIQQQQQII16s",
        head,
        0,
        MAGIC,
        1,
        1,
        len(raw),
        index_at,
        len(index),
        crc64(index),
        crc64(complement),
        rank,
        ranks,
        bytes.fromhex(save_id),
    )
    hook("header", rank, head)
    head_crc = crc64(bytes(head[:4088]))
    struct.pack_into("<Q", head, 4088, head_crc)
    raw[:4096] = head
    with open(path, "wb") as f:
        f.write(raw)
    return f"crc64xz:{head_crc:016x}", len(raw)


def write_checkpoint(directory, mesh, layout, tensors, data, deal, side, hooks=None):
    """deal: {rank: items}. hooks: {stage: function}; each may change what passes by."""
    hooks = hooks or {}

    def hook(stage, a, b):
        if stage not in hooks:
            return b
        result = hooks[stage](a, b)
        return b if result is None else result

    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(os.path.join(directory, "side") if side else directory)
    for t, values in zip(tensors, data):
        t["digest"] = "crc64xz:%016x" % crc64(take(values, t, [(0, n) for n in t["shape"]]))
    sides = []
    for name, content in sorted(side.items()):
        with open(os.path.join(directory, "side", name), "wb") as f:
            f.write(content)
        sides.append(
            {"digest": f"crc64xz:{crc64(content):016x}", "name": name, "size": len(content)}
        )
    m = {
        "format": "remesh",
        "format_version": 1,
        "blake2b": None,
        "files": [],
        "layout": layout,
        "mesh": mesh,
        "packaging": None,
        "run_id": "",
        "side": sides,
        "tensors": tensors,
    }
    m = hook(
        "manifest", directory, json.loads(json.dumps(m))
    )  # shards keep what the manifest loses
    m["save_id"] = hashlib.blake2b(
        text({k: m[k] for k in ("layout", "mesh", "run_id", "side", "tensors")}), digest_size=16
    ).hexdigest()
    ranks = math.prod(mesh["axes"].values())
    for rank, items in sorted(deal.items()):
        name = f"shard-{rank:05d}-of-{ranks:05d}.h5"
        header_crc, size = write_shard(
            os.path.join(directory, name), rank, ranks, m["save_id"], tensors, items, data, hook
        )
        m["files"].append({"header_crc": header_crc, "name": name, "size": size})
    m = hook("manifest late", directory, m)
    raw = hook("text", directory, text(m))
    with open(os.path.join(directory, "manifest.json"), "wb") as f:
        f.write(raw)
    with open(os.path.join(directory, "COMMIT"), "wb") as f:
        f.write(hook("commit", directory, b"crc64xz:%016x %d\n" % (crc64(raw), len(raw))))
    hook("after", directory, m)


def flip(path, at):
    with open(path, "r+b") as f:
        f.seek(at)
        value = f.read(1)[0]
        f.seek(at)
        f.write(bytes([value ^ 16]))


def reseal(folder, manifest, shard=None, index=None):
    """Makes all CRCs fit again after an index or the manifest was changed."""
    if shard is not None:
        raw = bytearray(Path(shard.path).read_bytes())
        raw[shard.index_at : shard.index_at + shard.index_size] = index
        spans = sorted(u for u in shard.used if u[2] not in ("header", "index"))
        spans = [(0, 4096)] + [u[:2] for u in spans] + [(len(raw), 0)]
        rest = b"".join(bytes(raw[a[1] : b[0]]) for a, b in zip(spans, spans[1:]))
        struct.pack_into("<QQ", raw, 40, crc64(index), crc64(rest))
        head_crc = crc64(bytes(raw[:4088]))
        struct.pack_into("<Q", raw, 4088, head_crc)
        with open(shard.path, "wb") as f:
            f.write(raw)
        for entry in manifest["files"]:
            if entry["name"] == shard.name:
                entry["header_crc"] = f"crc64xz:{head_crc:016x}"
    if isinstance(manifest, dict):
        manifest["save_id"] = (
            hashlib.blake2b(
                text({k: manifest.get(k) for k in ("layout", "mesh", "run_id", "side", "tensors")}),
                digest_size=16,
            ).hexdigest()
            if shard is None
            else manifest["save_id"]
        )
    raw = text(manifest)
    with open(os.path.join(folder, "manifest.json"), "wb") as f:
        f.write(raw)
    with open(os.path.join(folder, "COMMIT"), "wb") as f:
        f.write(b"crc64xz:%016x %d\n" % (crc64(raw), len(raw)))
