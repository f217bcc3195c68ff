"""Faults that leave a checkpoint whole and make another model of it, for semantic_faults_test.py.

A fault is a function of a World and a random generator. It returns a Fault: a state that was changed, how a user would
judge it, the ids that are right, and the tensors that it may be told of. Nothing here is of remesh.
"""

import copy
import dataclasses
import json
import re
import shutil
from pathlib import Path

import numpy as np

import states

E4M3 = None  # the values of its 256 words, made at first use


@dataclasses.dataclass
class Fault:
    state: object
    how: str            # "deep", "against" or "previous"
    ids: set            # any of these is right
    tensors: set        # at any of these
    what: str           # for people
    says: str = ""      # what a finding that names no tensor must say
    config: dict = dataclasses.field(default_factory=dict)  # keys of config.json that are others


class World:
    """The trained fixtures as they are, one step later, and what is made of them."""

    def __init__(self, fixtures, scratch):
        self.clean, self.later, self.earlier = {}, {}, {}
        self.scratch = Path(scratch)
        for name in ("llama-gqa", "llama-state", "llama-tied-state", "moe-state"):
            self.clean[name] = states.State(Path(fixtures, name))
        for name in ("llama-state", "llama-tied-state", "moe-state"):
            self.add_later(name, 1)
            self.add_later(name, 20)
        self.add("fused", fused(self.copy("llama-gqa")))
        self.add("fp8", in_fp8(self.copy("llama-gqa")))

    def add(self, name, state):
        state.write(self.scratch / name)
        self.clean[name] = states.State(self.scratch / name)

    def add_later(self, name, steps):
        key = f"{name}+{steps}"
        states.stepped(self.clean[name].directory, steps, seed=steps).write(self.scratch / key)
        self.later[key] = states.State(self.scratch / key)
        self.earlier[key] = name

    def copy(self, name):
        """Another state with the same arrays; a fault puts others in their places, and changes none of them."""
        state = copy.copy((self.later.get(name)) or self.clean[name])
        state.weights, state.optimizer = copied(state.weights), copied(state.optimizer)
        state.name = name
        return state


def copied(file):
    if file is None:
        return None
    other = states.File()
    other.tensors, other.dtypes, other.metadata = dict(file.tensors), dict(file.dtypes), dict(file.metadata)
    return other


def fused(state):
    """q, k and v as one tensor, grouped by key/value heads, and gate and up as one."""
    for layer in layers(state):
        base = f"model.layers.{layer}."
        parts = [state[f"{base}self_attn.{p}_proj.weight"] for p in "qkv"]
        state.weights.put(f"{base}self_attn.qkv_proj.weight", "BF16", group(parts, state.config()["num_key_value_heads"]))
        halves = [state[f"{base}mlp.{p}_proj.weight"] for p in ("gate", "up")]
        state.weights.put(f"{base}mlp.gate_up_proj.weight", "BF16", np.concatenate(halves))
        for name in ("self_attn.q", "self_attn.k", "self_attn.v", "mlp.gate", "mlp.up"):
            state.weights.drop(f"{base}{name}_proj.weight")
    return state


def group(parts, groups):
    """Of each group its part of q, of k and of v."""
    return np.concatenate([piece for pieces in zip(*(np.split(part, groups) for part in parts)) for piece in pieces])


def e4m3_values():
    global E4M3
    if E4M3 is None:
        words = np.arange(256)
        exponent, fraction = words >> 3 & 15, words & 7
        size = np.where(exponent == 0, fraction / 8 * 2.0**-6, (1 + fraction / 8) * 2.0 ** (exponent - 7.0))
        E4M3 = np.where(words & 0x7F == 0x7F, np.inf, np.where(words > 127, -size, size))
    return E4M3


def in_fp8(state):
    """Linear weights as e4m3, each with a scale beside it."""
    order = np.argsort(e4m3_values()[:127], kind="stable")
    sizes = e4m3_values()[:127][order]
    for name in [n for n in state.weights.tensors if n.endswith("_proj.weight")]:
        values = state[name]
        scale = np.float32(np.abs(values).max() / 448)
        wanted = np.abs(values) / scale
        near = np.searchsorted((sizes[1:] + sizes[:-1]) / 2, wanted)
        state.weights.put(name, "F8_E4M3", (order[near] | np.where(values < 0, 128, 0)).astype(np.uint8))
        state.weights.put(f"{name}_scale_inv", "F32", np.full((1, 1), scale, np.float32))
    return state


# ---- Choosing

def layers(state):
    found = {int(m[1]) for m in (re.match(r"model\.layers\.(\d+)\.", name) for name in state.weights.tensors) if m}
    return sorted(found)


def matrices(state, end=".weight"):
    return sorted(n for n, v in state.weights.tensors.items() if v.ndim == 2 and min(v.shape) > 1 and n.endswith(end))


def pick(random, some):
    return some[int(random.integers(len(some)))]


def related(state, name):
    """A parameter and the states that it has."""
    return [n for n in (name, f"{name}@master", f"{name}@exp_avg", f"{name}@exp_avg_sq")
            if n in state.weights.tensors or state.optimizer and n in state.optimizer.tensors]


def everywhere(state, name, change, kinds=("", "@master", "@exp_avg", "@exp_avg_sq")):
    """Changes a parameter and its states alike. Returns their names."""
    names = [n for n in related(state, name) if n[len(name):] in kinds]
    for each in names:
        state[each] = change(state[each])
    return set(names)


WEIGHTS = ("", "@master")
UNTIED = ("llama-gqa", "llama-state", "moe-state")
TRAINED = ("llama-state", "llama-tied-state", "moe-state")


def a_copy(world, random, names):
    return world.copy(pick(random, names))


def a_later(world, random):
    return world.copy(pick(random, sorted(world.later)))


# ---- Kinds

def exponent_bit(world, random):
    """One bit of one exponent. deep has the master to compare with; without one it is --against that tells, and a change
    of the two highest bits of weight and master alike --previous."""
    way = pick(random, ("deep", "against", "previous"))
    state = a_later(world, random) if way == "previous" else a_copy(
        world, random, TRAINED if way == "deep" else ("llama-gqa", "fused"))
    name = pick(random, matrices(state))
    at = tuple(int(random.integers(n)) for n in state[name].shape)
    bit = int(random.integers(29, 31) if way == "previous" else random.integers(23, 31))

    def flip(values):
        values = values.copy()
        values.view(np.uint32)[at] ^= np.uint32(1 << bit)
        return values

    kinds = WEIGHTS if way == "previous" else (pick(random, WEIGHTS),) if way == "deep" else ("",)
    touched = everywhere(state, name, flip, kinds)
    if way == "deep":
        touched.add(name)
    # Bit 30 of a number near 1 makes an infinity or a NaN of it, and of a small one below 2^-64 of a large one.
    ids = {"deep": {"RM504", "RM511"}, "against": {"RM311"}, "previous": {"RM512", "RM511"}}[way]
    return Fault(state, way, ids, touched, f"bit {bit} of {name}{list(at)} in {kinds}")


def nan(world, random):
    state = a_copy(world, random, TRAINED + ("llama-gqa", "fused"))
    name = pick(random, sorted(state.names()))
    values = state[name].copy()
    flat = values.reshape(-1)
    for at in random.integers(flat.size, size=int(random.integers(1, 4))):
        flat[at] = pick(random, (np.nan, np.inf, -np.inf))
    state[name] = values.reshape(values.shape)
    return Fault(state, "deep", {"RM511"}, {name}, f"in {name}")


def zeroed_rows(world, random):
    state = a_later(world, random)
    name = pick(random, matrices(state))
    rows = state[name].shape[0]
    first = int(random.integers(rows))
    last = min(rows, first + 1 + int(random.integers(4)))

    def zero(values):
        values = values.copy()
        values[first:last] = 0
        return values

    return Fault(state, "previous", {"RM512"}, everywhere(state, name, zero, WEIGHTS), f"{name}[{first}:{last}]")


def denormal_flood(world, random):
    state = a_copy(world, random, UNTIED + ("llama-tied-state", "fused"))
    name = pick(random, matrices(state))
    share = 0.6 + 0.4 * random.random()

    def sink(values):
        small = np.where(values < 0, -1, 1) * (2.0**-133 * random.integers(1, 100, values.shape))
        return np.where(random.random(values.shape) < share, small, values).astype(np.float32)

    return Fault(state, "deep", {"RM511"}, everywhere(state, name, sink, WEIGHTS), f"{share:.0%} of {name}")


def scale(world, random):
    way = pick(random, ("against", "previous"))
    state = a_later(world, random) if way == "previous" else a_copy(world, random, UNTIED + ("fused",))
    name = pick(random, matrices(state))
    k = int(pick(random, [k for k in range(-20, 21) if abs(k) >= (3 if way == "previous" else 1)]))
    touched = everywhere(state, name, lambda values: values * np.float32(2.0**k), WEIGHTS)
    return Fault(state, way, {"RM512" if way == "previous" else "RM532"}, touched, f"{name} times 2^{k}")


def lost_fp8_scale(world, random):
    state = world.copy("fp8")
    scales = sorted(n for n in state.weights.tensors if n.endswith("_scale_inv"))
    lost = scales if random.random() < 0.3 else [pick(random, scales)]
    for name in lost:
        state.weights.drop(name)
    return Fault(state, "deep", {"RM531"}, {n.removesuffix("_scale_inv") for n in lost}, f"{len(lost)} of {len(scales)}")


def rotary_halves(world, random):
    state = a_copy(world, random, UNTIED + ("llama-tied-state",))
    name = f"model.layers.{pick(random, layers(state))}.self_attn.{pick(random, 'qk')}_proj.weight"
    config = state.config()
    size = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    inverse = random.random() < 0.5

    def turn(values):
        heads = values.reshape(-1, *((size // 2, 2) if inverse else (2, size // 2)), values.shape[1])
        return np.swapaxes(heads, 1, 2).reshape(values.shape)

    return Fault(state, "against", {"RM521"}, everywhere(state, name, turn), f"{name}, inverse {inverse}")


def qkv_regrouped(world, random):
    state = world.copy("fused")
    name = f"model.layers.{pick(random, layers(state))}.self_attn.qkv_proj.weight"
    config = state.config()
    groups, heads = config["num_key_value_heads"], config["num_attention_heads"]
    size = config["head_dim"]
    pieces = [np.split(one, [heads // groups * size, (heads // groups + 1) * size])
              for one in np.split(state[name], groups)]
    parts = [np.concatenate(part) for part in zip(*pieces)]
    other = pick(random, (1, 2))
    state[name] = group(parts, other)
    return Fault(state, "against", {"RM522"}, {name}, f"{name}: {groups} groups are {other}")


def gate_and_up(world, random):
    state = a_copy(world, random, UNTIED + ("llama-tied-state", "fused"))
    gates = [n for n in matrices(state) if n.endswith(("gate_proj.weight", "gate_up_proj.weight"))]
    name = pick(random, gates)
    if "gate_up" in name:
        state[name] = np.concatenate(np.split(state[name], 2)[::-1])
        return Fault(state, "against", {"RM521"}, {name}, name)
    other = name.replace("gate_proj", "up_proj")
    return Fault(state, "against", {"RM524"}, exchange(state, [(name, other)]), name, f"'{name}' and '{other}' are exchanged")


def exchange(state, pairs):
    """Exchanges parameters and their states. Returns all names."""
    touched = set()
    for left, right in pairs:
        for each in related(state, left):
            other = right + each[len(left):]
            state[each], state[other] = state[other], state[each]
            touched |= {each, other}
    return touched


def transposed(world, random):
    state = a_copy(world, random, UNTIED + ("llama-tied-state", "fused"))
    name = pick(random, matrices(state))
    return Fault(state, "against", {"RM523"}, everywhere(state, name, lambda values: values.T.copy()), name)


def of_layer(state, layer):
    start = f"model.layers.{layer}."
    return [n for n in state.weights.tensors if n.startswith(start)]


def layers_exchanged(world, random):
    state = a_copy(world, random, UNTIED + ("llama-tied-state", "fused"))
    a, b = (int(k) for k in random.choice(layers(state), 2, replace=False))
    pairs = [(n, n.replace(f"layers.{a}.", f"layers.{b}.", 1)) for n in of_layer(state, a)]
    return Fault(state, "against", {"RM524"}, exchange(state, pairs), f"layers {a} and {b} of {state.name}",
                 f"layers {min(a, b)} and {max(a, b)} are exchanged")


def stage_shifted(world, random):
    """Layers of a stage stand one further, and the last of it comes first."""
    state = a_copy(world, random, UNTIED + ("llama-tied-state", "fused"))
    all_layers = layers(state)
    size = int(random.integers(3, len(all_layers) + 1))
    begin = int(random.integers(len(all_layers) - size + 1))
    stage, touched = all_layers[begin:begin + size], set()
    before = {n: state[n] for n in state.names()}
    for at, layer in enumerate(stage):
        for name in of_layer(state, layer):
            for each in related(state, name):
                state[each] = before[each.replace(f"layers.{layer}.", f"layers.{stage[at - 1]}.", 1)]
                touched.add(each)
    return Fault(state, "against", {"RM524"}, touched, f"layers {stage[0]} to {stage[-1]} of {state.name}",
                 f"layers {stage[0]}")


def experts_exchanged(world, random):
    state = world.copy("moe-state")
    chosen = [pick(random, layers(state))] if random.random() < 0.5 else layers(state)
    a, b = (int(k) for k in random.choice(8, 2, replace=False))
    pairs = [(f"model.layers.{layer}.mlp.experts.{a}.{part}_proj.weight",
              f"model.layers.{layer}.mlp.experts.{b}.{part}_proj.weight")
             for layer in chosen for part in ("gate", "up", "down")]
    return Fault(state, "against", {"RM524"}, exchange(state, pairs), f"experts {a} and {b} of layers {chosen}",
                 f"experts {min(a, b)} and {max(a, b)} are exchanged")


def stale_tied_copy(world, random):
    """The output is stored beside the embedding to which it is tied, as it was some steps ago."""
    later = world.copy(pick(random, ("llama-tied-state+1", "llama-tied-state+20")))
    old = world.clean["llama-tied-state"]["model.embed_tokens.weight"]
    later.weights.put("lm_head.weight", "BF16", old)
    return Fault(later, "deep", {"RM308"}, {"lm_head.weight"}, later.name)


def zeroed_moments(world, random):
    """All of them at deep; those of some parameters only the earlier save can tell from experts that never had any."""
    every = random.random() < 0.4
    state = a_copy(world, random, TRAINED) if every else a_later(world, random)
    parameters = sorted(state.weights.tensors)
    some = parameters if every else [pick(random, parameters) for _ in range(int(random.integers(1, 9)))]
    for name in some:
        everywhere(state, name, np.zeros_like, ("@exp_avg", "@exp_avg_sq"))
    return Fault(state, "deep" if every else "previous", {"RM503"}, set(some), f"{len(some)} of {state.name}")


def master_unlike_weight(world, random):
    """Masters of another step, or one element of one by the least that shows."""
    if random.random() < 0.5:
        state = world.copy(pick(random, sorted(world.later)))
        old = world.clean[world.earlier[state.name]]
        names = sorted(state.weights.tensors)
        some = names if random.random() < 0.5 else [pick(random, matrices(state))]
        for name in some:
            state[f"{name}@master"] = old[f"{name}@master"]
        return Fault(state, "deep", {"RM504"}, set(some), f"old masters of {len(some)} in {state.name}")
    state = a_copy(world, random, TRAINED)
    name = pick(random, sorted(state.weights.tensors))
    values = state[f"{name}@master"].copy()
    flat = values.reshape(-1).view(np.uint32)
    at = int(random.integers(flat.size))
    flat[at] ^= np.uint32(0x10000)
    state[f"{name}@master"] = values
    return Fault(state, "deep", {"RM504"}, {name}, f"one ulp of {name}, element {at}")


def padded_twice(world, random):
    state = a_copy(world, random, UNTIED + ("llama-tied-state",))
    vocabulary = state.config()["vocab_size"]
    once = vocabulary + int(random.integers(1, 200))
    twice = once + (once - vocabulary if random.random() < 0.5 else once)
    names = [n for n in ("model.embed_tokens.weight", "lm_head.weight") if n in state.weights.tensors]
    touched = set()
    for name in names:
        touched |= everywhere(state, name, lambda values: np.concatenate(
            [values, np.repeat(values[-1:], twice - vocabulary, axis=0)]))
    return Fault(state, "deep", {"RM541"}, touched, f"{vocabulary} rows are {twice} in {state.name}")


KINDS = {
    "exponent bit": exponent_bit, "NaN": nan, "zeroed rows": zeroed_rows, "denormal flood": denormal_flood,
    "2^k scale": scale, "lost FP8 scale": lost_fp8_scale, "rotary halves": rotary_halves,
    "QKV regrouped": qkv_regrouped, "gate and up exchanged": gate_and_up, "transposed": transposed,
    "layers exchanged": layers_exchanged, "stage shifted by one": stage_shifted, "experts exchanged": experts_exchanged,
    "stale tied copy": stale_tied_copy, "zeroed moments": zeroed_moments, "master unlike weight": master_unlike_weight,
    "vocabulary padded twice": padded_twice,
}


def write(fault, directory):
    state, directory = fault.state, Path(directory)
    directory.mkdir()
    for path in state.directory.iterdir():
        if path.suffix != ".safetensors":
            shutil.copyfile(path, directory / path.name)
    if fault.config:
        (directory / "config.json").write_text(json.dumps(state.config() | fault.config))
    state.weights.write(directory / "model.safetensors")
    if state.optimizer:
        state.optimizer.write(directory / "optimizer.safetensors")
