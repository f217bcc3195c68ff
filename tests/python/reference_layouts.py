"""Layouts by chance, and what ranks hold of them, element by element: as literal as can be."""

import itertools
import json
import math

import numpy as np

from reference_writer import BITS  # noqa: F401, it finds the reader
from reference_basics import volume
from reference_layout import overlaps


class Elements:
    """What each rank holds, as lists of element numbers: slow, and as literal as can be."""

    def __init__(self, mesh, layout, tensors):
        self.mesh, self.layout, self.tensors = mesh, layout, tensors
        self.ranks = math.prod(mesh["axes"].values())

    def coordinate(self, rank, axis):
        for grid in (self.mesh, self.mesh["experts"]):
            if axis in grid["axes"]:
                for name in grid["order"]:
                    if name == axis:
                        return rank % grid["axes"][name], grid["axes"][name]
                    rank //= grid["axes"][name]
        if not self.mesh["experts"]["axes"]:
            if axis == "etp":
                return self.coordinate(rank, "tp")
            if axis == "edp":
                (c, n), (d, k) = self.coordinate(rank, "cp"), self.coordinate(rank, "dp")
                return c + n * d, n * k
        return 0, 1

    def index(self, rank, over):
        at, count = 0, 1
        for axis in over:
            c, n = self.coordinate(rank, axis)
            at, count = at + count * c, count * n
        return at, count

    def share(self, run, at, count, rule, block, groups, beyond, sizes):
        if groups and count <= groups and groups % count == 0:
            per = len(run) // groups
            return [
                x
                for g in range(groups)
                if g * count // groups == at
                for x in run[g * per : (g + 1) * per]
            ]
        if groups and beyond == "share" and count % groups == 0:
            per = len(run) // groups
            g = at * groups // count
            return run[g * per : (g + 1) * per]
        assert not groups or beyond == "divide"
        if rule == "sizes":
            return run[sum(sizes[:at]) : sum(sizes[: at + 1])]
        blocks = [run[i : i + block] for i in range(0, len(run), block)]
        if rule == "chunk":
            each = math.ceil(len(blocks) / count)
            mine = blocks[at * each : (at + 1) * each]
        else:
            lengths = [len(blocks) // count + (i < len(blocks) % count) for i in range(count)]
            mine = blocks[sum(lengths[:at]) : sum(lengths[: at + 1])]
        return [x for b in mine for x in b]

    def left(self, t, rank):
        """Indices of each dim, or None."""
        p = self.layout["placements"][t["placement"]]
        for pin in p["pins"]:
            c, n = self.coordinate(rank, pin["axis"])
            if pin["to"] == "layer":
                stage = next(
                    s
                    for s in range(len(self.layout["stages"]))
                    if sum(self.layout["stages"][: s + 1]) > t["layer"]
                )
                good = [stage % n]
            elif pin["to"] == "expert":
                owner = [
                    r
                    for r in range(n)
                    for _ in range(pin["experts"] // n + (r < pin["experts"] % n))
                ]
                good = [owner[t["expert"]]]
            else:
                good = {
                    "coordinates": pin["coordinates"],
                    "first": [0],
                    "last": [n - 1],
                    "ends": [0, n - 1],
                }[pin["to"]]
            if c not in good:
                return None
        scaled = {s["dim"]: s for s in p["scaled"]}
        dims = [
            list(range(scaled[d]["of"] if d in scaled and scaled[d]["of"] else n))
            for d, n in enumerate(t["shape"])
        ]
        for s in p["splits"]:
            at, count = self.index(rank, s["over"])
            block = (
                math.lcm(s["block"], scaled[s["dim"]]["block"])
                if s["dim"] in scaled
                else s["block"]
            )
            run, out = dims[s["dim"]], []
            for part in s["parts"] or [
                {"groups": s["groups"], "beyond": s["beyond"], "size": len(run)}
            ]:
                out += self.share(
                    run[: part["size"]],
                    at,
                    count,
                    s["rule"],
                    block,
                    part["groups"],
                    part["beyond"],
                    s["sizes"],
                )
                run = run[part["size"] :]
            dims[s["dim"]] = out
        for d, s in scaled.items():
            if s["of"]:
                dims[d] = sorted({x // s["block"] for x in dims[d]})
        return dims

    def numbers(self, t, rank):
        """Numbers of the elements that pins and splits leave, in the rank's order."""
        dims = self.left(t, rank)
        if dims is None:
            return []
        whole = np.arange(math.prod(t["shape"])).reshape(t["shape"])
        return whole[np.ix_(*dims)].reshape(-1).tolist() if dims else [0]

    def held(self, rank):
        """For each tensor the set of element numbers."""
        result, flats = [], {}
        for i, t in enumerate(self.tensors):
            flat = self.layout["placements"][t["placement"]]["flat"]
            result.append(set(self.numbers(t, rank)) if flat is None else set())
            if flat is not None:
                key = {"all": 0, "layer": t["layer"], "tensor": i}[flat["unit"]]
                flats.setdefault((json.dumps(flat, sort_keys=True), key), []).append(i)
        for (flat, _), members in flats.items():
            flat = json.loads(flat)
            at, count = self.index(rank, flat["over"])
            lines = [[]]
            for i in reversed(members) if flat["reversed"] else members:
                mine = self.numbers(self.tensors[i], rank)
                if mine:
                    lines[-1] += [None] * (-len(lines[-1]) % flat["align"]) + [(i, x) for x in mine]
                    if flat["bucket"] and len(lines[-1]) >= flat["bucket"]:
                        lines.append([])
            for line in lines:
                line += [None] * (-len(line) % math.lcm(flat["pad"], count * flat["pad_each"]))
                each = len(line) // count
                for entry in line[at * each : (at + 1) * each]:
                    if entry:
                        result[entry[0]].add(entry[1])
        return result


def split(dim, over, rule="balanced", block=1, groups=0, beyond="refuse", parts=(), sizes=()):
    return {
        "beyond": beyond,
        "block": block,
        "dim": dim,
        "groups": groups,
        "over": list(over),
        "parts": list(parts),
        "rule": rule,
        "sizes": list(sizes),
        "unit": "",
    }


def pin(axis, to, coordinates=(), experts=0):
    return {"axis": axis, "coordinates": list(coordinates), "experts": experts, "to": to}


def random_case(rng):
    """A mesh, a layout and tensors."""
    tp, cp, dp, pp = rng.choice(
        [
            (2, 1, 2, 1),
            (1, 2, 2, 2),
            (3, 1, 2, 1),
            (4, 1, 1, 2),
            (2, 2, 2, 2),
            (1, 1, 1, 1),
            (4, 1, 3, 1),
            (2, 1, 3, 2),
            (1, 1, 4, 1),
        ]
    )
    axes = {"tp": tp, "cp": cp, "dp": dp, "pp": pp}
    order = ["tp", "cp", "dp", "pp"]
    if rng.random() < 0.3:
        order = rng.sample(order, 4)
    experts = {"axes": {}, "order": []}
    second = order.index("pp") == 3 and rng.random() < 0.4
    if second:
        ep = rng.choice([n for n in (1, 2, 3, 4) if tp * cp * dp % n == 0])
        experts = {
            "axes": {"etp": 1, "ep": ep, "edp": tp * cp * dp // ep, "pp": pp},
            "order": ["etp", "ep", "edp", "pp"],
        }
    virtual = rng.choice([1, 2]) if pp > 1 else 1
    mesh = {"axes": axes, "experts": experts, "order": order, "virtual_stages": virtual}
    stages = [rng.randrange(0, 3) for _ in range(pp * virtual)]
    if not sum(stages):
        stages[0] = 2
    placements, tensors = [], []
    flats = [
        {
            "align": rng.choice([1, 1, 4, 16]),
            "bucket": rng.choice([0, 0, 20, 200]),
            "name": "x",
            "over": ["cp", "dp"],
            "pad": rng.choice([1, 8]),
            "pad_each": rng.choice([1, 2]),
            "reversed": rng.random() < 0.5,
            "unit": rng.choice(["all", "layer", "tensor"]),
        }
        for _ in range(2)
    ]
    dtypes = [d for d in BITS]
    for i in range(rng.randrange(3, 10)):
        expert = rng.random() < 0.25
        tensor_axis, rest = (["etp"], ["edp"]) if expert else (["tp"], ["cp", "dp"])
        n = dict(etp=experts["axes"].get("etp", 1) if second else tp, tp=tp)[tensor_axis[0]]
        m = experts["axes"]["edp"] if expert and second else cp * dp
        p = {"flat": None, "pins": [], "scaled": [], "splits": []}
        dim0, dim1 = rng.randrange(1, 12), rng.randrange(1, 9)
        shape = rng.choice([[dim0, dim1], [dim0], [dim0, dim1, 3], [dim0, 2, dim1]])
        how = rng.randrange(9)
        if how == 1:
            p["splits"].append(
                split(0, tensor_axis, rng.choice(["balanced", "chunk"]), rng.choice([1, 2, 3]))
            )
        elif how == 2:
            groups = rng.choice([1, 2, 4, 6])
            shape[0] = groups * rng.randrange(1, 4)
            p["splits"].append(
                split(0, tensor_axis, groups=groups, beyond="divide" if n % groups else "share")
            )
            if n % groups and groups % n:
                p["splits"][0]["beyond"] = "divide"
        elif how == 3:
            parts = [
                {"beyond": "share", "groups": g, "size": g * rng.randrange(1, 3)}
                for g in (2 * n, n, n)
            ]
            shape[0] = sum(x["size"] for x in parts)
            p["splits"].append(split(0, tensor_axis, parts=parts))
        elif how == 4:
            block = rng.choice([2, 3])
            shape[-1] = rng.randrange(1, 20)
            p["scaled"].append({"block": block, "dim": len(shape) - 1, "of": 0})
            p["splits"].append(split(len(shape) - 1, tensor_axis))
        elif how == 5:
            block, of = rng.choice([2, 3]), rng.randrange(1, 20)
            shape[0] = math.ceil(of / block)
            p["scaled"].append({"block": block, "dim": 0, "of": of})
            p["splits"].append(split(0, tensor_axis, block=rng.choice([1, 2])))
        elif how == 6:
            shape[0] = rng.randrange(n, n + 9)
            borders = sorted(rng.randrange(shape[0] + 1) for _ in range(n - 1))
            p["splits"].append(
                split(
                    0,
                    tensor_axis,
                    "sizes",
                    sizes=[b - a for a, b in zip([0] + borders, borders + [shape[0]])],
                )
            )
        elif how == 7:
            shape = [] if rng.random() < 0.5 else [rng.choice([0, 3]), 0]
        if shape and math.prod(shape) and rng.random() < 0.5:
            if rng.random() < 0.7 and not p["scaled"]:
                p["flat"] = dict(rng.choice(flats), over=rest)
            else:
                p["splits"].append(
                    split(rng.randrange(len(shape)), rest, rng.choice(["balanced", "chunk"]))
                )
                if p["splits"][-1]["dim"] in [s["dim"] for s in p["scaled"]]:
                    p["splits"].pop()
        dtype = rng.choice(dtypes)
        if BITS[dtype] % 8:  # packed ones are kept whole here: pieces must not end within a byte
            shape = [rng.randrange(1, 5), 4]
            p = {"flat": None, "pins": [], "scaled": [], "splits": [split(0, tensor_axis)]}
        if pp > 1 or rng.random() < 0.5:
            p["pins"].append(
                rng.choice(
                    [
                        pin("pp", "layer"),
                        pin("pp", "first"),
                        pin("pp", "last"),
                        pin("pp", "ends"),
                        pin("pp", "coordinates", [pp - 1]),
                    ]
                )
            )
        t = {
            "dtype": dtype,
            "layer": rng.randrange(sum(stages)),
            "name": f"t{i}." + rng.choice(["w", "ä/x", "@m", "%"]),
            "placement": i,
            "shape": shape,
        }
        if expert:
            t["expert"] = rng.randrange(6)
            p["pins"].append(pin("ep", "expert", experts=6))
        placements.append(p)
        tensors.append(t)
    return mesh, {"placements": placements, "stages": stages}, tensors


def cut(holders):
    """Cuts boxes that overlap without being equal, along all borders that lie inside of another."""
    boxes = list(holders)
    disputed, borders = set(), [set() for _ in boxes[0]] if boxes else []
    for i, j in overlaps(boxes):
        disputed |= {i, j}
        for dim, ((b1, e1), (b2, e2)) in enumerate(zip(boxes[i], boxes[j])):
            borders[dim] |= {x for x in (b2, e2) if b1 < x < e1} | {
                x for x in (b1, e1) if b2 < x < e2
            }
    result = {}
    for i, box in enumerate(boxes):
        parts = [box]
        if i in disputed:
            edges = [
                sorted({b, e} | {x for x in cuts if b < x < e})
                for (b, e), cuts in zip(box, borders)
            ]
            parts = itertools.product(*(list(zip(x, x[1:])) for x in edges))
        for part in parts:
            result.setdefault(part, set()).update(holders[box])
    return result


def is_whole(tensor, pieces):
    """Whether some rank holds each element; pieces are disjoint."""
    return bool(pieces) and sum(map(volume, pieces)) == math.prod(tensor["shape"])


def deal_out(rng, tensors, pieces, chunked):
    """Items for write_checkpoint: each piece with one or two copies, a share of them in chunks."""
    deal = {}
    for number, boxes in enumerate(pieces):
        for box, ranks in boxes.items():
            copies = min(len(ranks), rng.choice([1, 1, 2]))
            for copy, rank in enumerate(rng.sample(sorted(ranks), copies)):
                dim, size = None, 0
                whole_bytes = BITS[tensors[number]["dtype"]] % 8 == 0
                if box and volume(box) and whole_bytes and rng.random() < chunked:
                    dim = rng.randrange(len(box))
                    size = rng.randrange(1, box[dim][1] - box[dim][0] + 1)
                deal.setdefault(rank, []).append((number, box, copy, dim, size))
    return deal
