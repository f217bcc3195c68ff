"""A checkpoint that has a bit of everything, and the ways to spoil it that a reader must see."""

import os
import random
import shutil

import h5py
import numpy as np

from reference_layouts import pin, split
from reference_writer import attribute, compress, flip, random_data
from reference_checkpoint import Checkpoint

LINE = {
    "align": 1,
    "bucket": 0,
    "name": "x",
    "over": ["dp"],
    "pad": 1,
    "pad_each": 1,
    "reversed": False,
    "unit": "all",
}


def base():
    """A checkpoint that has a bit of everything."""
    mesh = {
        "axes": {"tp": 2},
        "experts": {"axes": {}, "order": []},
        "order": ["tp"],
        "virtual_stages": 1,
    }
    none = {"flat": None, "pins": [], "scaled": [], "splits": []}
    parts = [{"beyond": "share", "groups": g, "size": 2 * g} for g in (2, 1)]
    shared = dict(none, splits=[split(0, ["tp"], parts=parts)])  # the last part is on both ranks
    placements = [dict(none, splits=[split(0, ["tp"])]), none, shared]
    tensors = [
        {"dtype": "f32", "layer": -1, "name": "a", "placement": 0, "shape": [4, 6]},
        {"dtype": "u16", "layer": -1, "name": "b", "placement": 1, "shape": [5, 512]},
        {"dtype": "bf16", "layer": -1, "name": "c", "placement": 1, "shape": [5]},
        {"dtype": "f4", "layer": -1, "name": "d", "placement": 0, "shape": [4, 4]},
        {"dtype": "u8", "layer": -1, "name": "e", "placement": 1, "shape": [0, 3]},
        {"dtype": "f64", "layer": -1, "name": "..", "placement": 1, "shape": []},
        {"dtype": "u16", "layer": -1, "name": "g", "placement": 2, "shape": [6]},
    ]
    rng = random.Random(5)
    data = [random_data(t, rng, True) for t in tensors]
    deal = {
        0: [
            (0, ((0, 2), (0, 6)), 0, None, 0),
            (1, ((0, 5), (0, 512)), 0, 0, 2),
            (3, ((0, 2), (0, 4)), 0, None, 0),
            (6, ((0, 2),), 0, None, 0),
            (6, ((4, 6),), 0, None, 0),
        ],
        1: [
            (0, ((2, 4), (0, 6)), 0, None, 0),
            (2, ((0, 5),), 0, None, 0),
            (3, ((2, 4), (0, 4)), 0, None, 0),
            (4, ((0, 0), (0, 3)), 0, None, 0),
            (5, (), 0, None, 0),
            (6, ((2, 4),), 0, None, 0),
            (1, ((0, 5), (0, 512)), 1, 1, 100),
        ],
    }
    return (
        mesh,
        {"placements": placements, "stages": []},
        tensors,
        data,
        deal,
        {"config.json": b"{}", "x": b"abc" * 99},
    )


def defects():
    """(title, hooks or a change of the dealt items, what must be said)."""

    def after(change):
        return {"after": lambda d, m: change(d, m)}

    s0, s1 = "shard-00000-of-00002.h5", "shard-00001-of-00002.h5"

    def only(rank, change):
        return lambda r, x: change(x) if r == rank else None

    def column(name, i, value):
        def change(c):
            c[name][i] = value(c[name][i]) if callable(value) else value

        return {"columns": only(0, change)}

    def head(offset, value):
        def change(h):
            h[offset : offset + len(value)] = value

        return {"header": only(0, change)}

    def in_manifest(change, stage="manifest"):
        def f(_, m):
            change(m)
            return m

        return {stage: f}

    def in_text(old, new):
        return {"text": lambda d, raw: raw.replace(old, new, 1)}

    def at_tensor(stage, number, value):
        return {stage: lambda n, v: (value(v) if callable(value) else value) if n == number else v}

    def link(name):
        def change(d, m):
            os.rename(f"{d}/{name}", f"{d}/stranger")
            os.symlink(os.path.abspath(f"{d}/stranger"), f"{d}/{name}")

        return {"after": change}

    def swap(d, m):
        os.rename(f"{d}/{s0}", f"{d}/x")
        shutil.copy(f"{d}/{s1}", f"{d}/{s0}")

    def hdf5(change):
        return {"hdf5": lambda f, sets: change(f)}

    def soft(f):
        group = h5py.h5g.open(f, b"tensors")
        group.links.create_soft(b"zz", b"/tensors/a")

    def external(f):
        group = h5py.h5g.open(f, b"tensors")
        group.links.create_external(b"zz", b"other.h5", b"/x")

    def hard(f):
        group = h5py.h5g.open(f, b"tensors")
        group.links.create_hard(b"zz", group, b"a")

    def extra(f):
        h5py.h5d.create(f, b"more", h5py.h5t.STD_U8LE, h5py.h5s.create_simple((3,)))

    def rank_attribute(f):
        attribute(h5py.h5g.open(f, b"tensors"), "note", "x")

    def fill(p):
        p.set_fill_value(np.array(3, "f4"))
        return p

    def filtered(p):
        q = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        q.set_chunk(p.get_chunk())
        q.set_shuffle()
        q.set_filter(32013, h5py.h5z.FLAG_OPTIONAL, (3,))
        q.set_obj_track_times(False)
        return q

    def overlap(c):
        c["offsets"][1] = c["offsets"][0] + 1

    def hole(deal):
        deal[1] = [i for i in deal[1] if i[0] != 0]

    def twice(deal):
        deal[0].append((2, ((0, 5),), 0, None, 0))

    def other_rank(deal):
        deal[0][0], deal[1][0] = deal[1][0], deal[0][0]

    def other_pieces(deal):
        deal[0][0:1] = [(0, ((0, 1), (0, 6)), 0, None, 0), (0, ((1, 2), (0, 6)), 0, None, 0)]

    def crossing(deal):
        deal[0] = deal[0][:-1]
        deal[1] = [i for i in deal[1] if i[0] != 6] + [(6, ((2, 6),), 0, None, 0)]

    def within_a_byte(deal):
        deal[0] = [i for i in deal[0] if i[0] != 3]
        deal[0] += [(3, ((0, 2), columns), 0, None, 0) for columns in ((0, 1), (1, 4))]

    def on_one_rank(deal):
        deal[0].append((2, ((0, 5),), 1, None, 0))
        deal[0].append((2, ((0, 5),), 2, None, 0))

    def gap_in_copies(deal):
        deal[1][-1] = (1, ((0, 5), (0, 512)), 2, 1, 100)

    def longer(d, m):
        with open(f"{d}/side/x", "ab") as f:
            f.write(b"1")

    def damage_payload(raw, placed):
        p = next(p for p in placed if p[1] == 0)
        raw[p[0]] ^= 1

    def truncated(d, m):
        with open(f"{d}/{s0}", "r+b") as f:
            f.truncate(os.path.getsize(f"{d}/{s0}") - 1)

    def payload_at(d, m, number, shard=s0):
        c = Checkpoint(d)
        e = next(e for s in c.shards if s.name == shard for e in s.extents if e.number == number)
        flip(f"{d}/{shard}", e.offset)

    def placement(m, number):
        return m["layout"]["placements"][number]

    deep = b"[" * 70 + b"]" * 70
    yield "no COMMIT", after(lambda d, m: os.remove(f"{d}/COMMIT")), "COMMIT: No such file"
    yield "COMMIT of another manifest", {
        "commit": lambda d, c: c.replace(c[8:12], b"0123")
    }, "COMMIT says"
    yield "COMMIT with other size", {"commit": lambda d, c: c[:25] + b"77\n"}, "COMMIT says 77"
    yield "COMMIT of two lines", {"commit": lambda d, c: c + b"\n"}, "is not CRC and size"
    yield "flip in manifest", after(lambda d, m: flip(f"{d}/manifest.json", 50)), "COMMIT says"
    yield "fraction", in_text(b'"layer":-1', b'"layer":1.0'), "no integer"
    yield "big number", in_text(b'"layer":-1', b'"layer":9223372036854775808'), "out of range"
    yield "repeated key", in_text(
        b'"run_id":""', b'"run_id":"","run_id":""'
    ), "repeated key 'run_id'"
    yield "not UTF-8", in_text(b'"run_id":""', b'"run_id":"\xff"'), "not JSON"
    yield "deep nesting", in_text(b'"run_id":""', b'"run_id":' + deep), "deeper than 64"
    yield "unknown key", in_manifest(lambda m: m.update(zzz=1)), "unknown key 'zzz'"
    yield "missing key", in_manifest(lambda m: m.pop("packaging")), "no key 'packaging'"
    yield "manifest version 0", in_manifest(
        lambda m: m.update(format_version=0)
    ), "format version 0"
    yield "manifest version 2", in_manifest(
        lambda m: m.update(format_version=2)
    ), "format version 2"
    yield "wrong save id", in_manifest(
        lambda m: m.update(run_id="x"), "manifest late"
    ), "worked out"
    yield "a tensor twice", in_manifest(
        lambda m: m["tensors"][2].update(name="a")
    ), "is there twice"
    yield "nine dims", in_manifest(lambda m: m["tensors"][2].update(shape=[1] * 9)), "9 items"
    yield "too many bits", in_manifest(
        lambda m: m["tensors"][2].update(shape=[2**40, 2**30])
    ), "63 bits"
    yield "no whole bytes", in_manifest(
        lambda m: m["tensors"][3].update(shape=[3, 3])
    ), "no whole bytes"
    yield "unknown dtype", in_manifest(
        lambda m: m["tensors"][2].update(dtype="f12")
    ), "'f12' is none of"
    yield "placement of nothing", in_manifest(
        lambda m: m["tensors"][2].update(placement=9)
    ), "9 is not in"
    yield "truth value as number", in_manifest(
        lambda m: m["tensors"][2].update(layer=True)
    ), "not an integer"
    yield "axis twice", in_manifest(
        lambda m: placement(m, 0)["splits"].append(split(1, ["tp"]))
    ), "divides twice"
    yield "axes of both grids", in_manifest(
        lambda m: placement(m, 0)["splits"].append(split(1, ["edp"]))
    ), "axes of both grids"
    yield "divided over and pinned", in_manifest(
        lambda m: placement(m, 0)["pins"].append(pin("tp", "first"))
    ), "pinned to some of it"
    yield "sizes and groups", in_manifest(
        lambda m: placement(m, 0)["splits"][0].update(rule="sizes", groups=2)
    ), "sizes are listed"
    yield "a line that cuts blocks", in_manifest(
        lambda m: placement(m, 1).update(flat=LINE, scaled=[{"block": 2, "dim": 0, "of": 0}])
    ), "a line would cut"
    yield "pinned to a layer that has no stage", in_manifest(
        lambda m: placement(m, 1)["pins"].append(pin("pp", "layer"))
    ), "pinned to layer -1"
    yield "pinned as the expert that it is not", in_manifest(
        lambda m: placement(m, 1)["pins"].append(pin("ep", "expert", experts=4))
    ), "expert None of 4"
    yield "layer without a stage", in_manifest(
        lambda m: (m["layout"].update(stages=[3]), m["tensors"][0].update(layer=3))
    ), "3 is not in [-1, 2]"
    yield "NUL in a name", in_manifest(lambda m: m["tensors"][2].update(name="c\0")), "has a NUL"
    yield "side name", in_manifest(
        lambda m: m["side"][0].update(name="../c")
    ), "no name of a side file"
    yield "side order", in_manifest(lambda m: m["side"].reverse()), "not ascending"
    yield "axis size 0", in_manifest(lambda m: m["mesh"]["axes"].update(tp=0)), "0 is not in [1"
    yield "stages", in_manifest(lambda m: m["layout"].update(stages=[1, 1])), "2 stages, not 1"
    yield "virtual stages", in_manifest(lambda m: m["mesh"].update(virtual_stages=2)), "but pp is 1"
    yield "shard of another mesh", in_manifest(
        lambda m: m["files"][0].update(name="shard-00000-of-00003.h5"), "manifest late"
    ), "no shard of a mesh"
    yield "missing shard", after(lambda d, m: os.remove(f"{d}/{s1}")), f"{s1}: No such file"
    yield "shard is a link", link(s0), "not a regular file"
    yield "shard of another rank", after(swap), "the manifest says"
    yield "truncated shard", after(truncated), "the manifest says"
    yield "flip in header", after(lambda d, m: flip(f"{d}/{s0}", 30)), "header: CRC"
    yield "flip in version", after(lambda d, m: flip(f"{d}/{s0}", 8)), "header: CRC"
    yield "COMMIT is a link", link("COMMIT"), "COMMIT: not a regular file"
    yield "manifest is a link", link("manifest.json"), "manifest.json: not a regular file"
    yield "side is a link", link("side"), "side: not a directory"
    yield "side file is a link", link("side/config.json"), "side/config.json: not a regular file"
    yield "flip in zeros", after(lambda d, m: flip(f"{d}/{s0}", 3000)), "header: CRC"
    yield "magic", after(lambda d, m: flip(f"{d}/{s0}", 1)), "magic"
    yield "header not zero", head(80, b"\1"), "must be zero"
    yield "unfinished", head(12, bytes(4)), "never finished"
    yield "shard version 0", head(8, bytes(4)), "format version 0"
    yield "shard version 2", head(8, b"\2"), "format version 2"
    yield "save id of another", head(64, bytes(16)), "save id 0000"
    yield "header of rank 1", head(56, b"\1"), "rank 1 of 2"
    yield "header of 3 ranks", head(60, b"\3"), "rank 0 of 3"
    yield "header CRC in manifest", in_manifest(
        lambda m: m["files"][0].update(header_crc="crc64xz:" + "1" * 16), "manifest late"
    ), "the manifest has crc"
    yield "size in header", head(16, b"\0\0\0\0"), "size 0"
    yield "index outside", head(24, b"\xff" * 7), "not in the file"
    yield "index of 2 GiB", head(36, b"\2"), "an index of"
    yield "index CRC", head(40, bytes(8)), "index: CRC 0000000000000000"
    yield "complement CRC", head(48, bytes(8)), "complement: CRC"
    yield "flip in HDF5 metadata", after(lambda d, m: flip(f"{d}/{s0}", 4096 + 60)), "complement"
    yield "flip in index", after(
        lambda d, m: flip(f"{d}/{s0}", Checkpoint(d).shards[0].index_at + 60)
    ), "index: CRC"
    yield "flip in payload", after(lambda d, m: payload_at(d, m, 0)), "block 0"
    yield "flip in a frame", after(lambda d, m: payload_at(d, m, 1)), "block 0"
    yield "counts", {"columns": only(0, lambda c: c.update(counts=[2**60] * 7))}, "no room"
    yield "counts do not fit", {
        "columns": only(0, lambda c: c.update(counts=[3, 3, 5, 6, 12, 90, 3]))
    }, "its counts make"
    yield "index padding", {
        "index": only(1, lambda i: i[:-1] + b"\1" if i[-1] == 0 else 1 / 0)
    }, "must be zero"
    yield "tensor number", column("numbers", -1, 77), "tensor number 77"
    yield "name in index", {
        "columns": only(0, lambda c: c.update(names=b"x" + c["names"][1:]))
    }, "name b'x'"
    yield "dtype in index", column("dtypes", 0, 16), "dtype 16"
    yield "shape in index", column("shapes", 0, 5), "shape [5, 6]"
    yield "box outside", column("boxes", 1, 99), "is not in"
    yield "length", column("lengths", 0, lambda v: v + 1), "its box has"
    yield "first block", column("first", 1, 0), "first block 0, not"
    yield "overlapping extents", {"columns": only(1, overlap)}, "overlaps"
    yield "extent in header", column("offsets", 0, 8), "overlaps"
    yield "chunk dim", column("chunk_dims", [k for k in range(3)][2], 9), "along dim"
    yield "frame size", column("frame_sizes", 0, 0), "has 0 bytes"
    yield "frame kind", column("kinds", 0, 2), "kind 2"
    yield "frame order", column("frame_at", 2, 5000), "behind the one before"
    yield "trailing bytes of a frame", at_tensor(
        "frame", 1, lambda f: f + b"\0"
    ), "bytes behind the frame"
    yield "two frames", at_tensor("frame", 1, lambda f: f + compress(b"")), "bytes behind the frame"
    yield "frame of another size", at_tensor(
        "frame", 1, lambda f: compress(b"abc")
    ), "the frame states 3"
    yield "no frame", at_tensor("frame", 1, lambda f: b"abcdefgh"), "not a zstd frame"
    yield "padding", at_tensor("padding", 1, lambda z: b"\1" * len(z)), "not zero"
    yield "scalar twice", lambda deal: deal[0].append((5, (), 0, None, 0)), "both of copy 0"
    yield "hole", hole, "copy 0 has 12 of 24"
    yield "double", twice, "both of copy 0"
    yield "piece of another rank", other_rank, "but the layout gives"
    yield "other pieces", other_pieces, "but a part of one"
    yield "piece across two ranks' parts", crossing, "lies partly in"
    yield "packed row that ends within a byte", within_a_byte, "border within a byte"
    yield "copies on one rank", on_one_rank, "on ranks [0, 0, 1]"
    yield "copies 0 and 2", gap_in_copies, "copies [0, 2]"
    yield "digest", {"payload": damage_payload}, "digest"
    yield "side file missing", after(lambda d, m: os.remove(f"{d}/side/x")), "side/x"
    yield "side file flipped", after(lambda d, m: flip(f"{d}/side/x", 5)), "side/x: CRC"
    yield "side file longer", after(longer), "298 bytes"
    yield "roots", in_manifest(
        lambda m: m.update(blake2b={"files": ["0" * 64] * 2, "side": ["0" * 64] * 2}),
        "manifest late",
    ), "tree root"
    yield "HDF5 type", at_tensor("type", 0, h5py.h5t.STD_I32LE), "HDF5 type"
    yield "HDF5 dims", at_tensor("dims", 0, (3, 4)), "dims (3, 4)"
    yield "HDF5 dims of a copy", at_tensor("dims", 2, (5, 1)), "dims (5, 1)"
    yield "soft link", hdf5(soft), "no hard link"
    yield "external link", hdf5(external), "no hard link"
    yield "second hard link", hdf5(hard), "names"
    yield "extra dataset", hdf5(extra), "not remesh and tensors"
    yield "attribute on a group", hdf5(rank_attribute), "has attributes"
    yield "attribute of another box", at_tensor("box", 0, lambda b: b + 1), "remesh_box"
    yield "attribute of another name", at_tensor(
        "attributes", 0, lambda a: dict(a, remesh_tensor="b")
    ), "remesh_tensor"
    yield "extra attribute", at_tensor("attributes", 0, lambda a: dict(a, more="b")), "attributes"
    yield "other group name", at_tensor("group", 0, "A"), "odd:"
    yield "fill value", at_tensor("plist", 0, fill), "fill value"
    yield "external storage", at_tensor("external", 0, True), "external storage"
    yield "other filter", at_tensor("plist", 1, filtered), "not shuffle and zstd"
