"""Greedy decoding of Hugging Face Llama directories with numpy alone.

    forward.py stories DIR TOKENIZER_BIN EXPECTED_TXT   decodes from BOS until the expected text is reached or missed
    forward.py greedy DIR EXPECTED_JSON                 compares greedy token ids and the logits after the prompt

Exits 0 if the model says what is expected and 1 if it does not.
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np

BOS = 1
LOGIT_TOLERANCE = 2e-3


def widen(raw, dtype):
    """Little-endian bf16 or f32 bytes as float32."""
    if dtype == "BF16":
        return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
    if dtype == "F32":
        return np.frombuffer(raw, "<f4")
    raise ValueError(f"unsupported dtype {dtype}")


def read_safetensors(path):
    """Every tensor of one file: an 8-byte length, a JSON header, then the bytes that it describes."""
    raw = path.read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    header, data = json.loads(raw[8 : 8 + length]), memoryview(raw)[8 + length :]
    header.pop("__metadata__", None)
    return {
        name: widen(data[slice(*entry["data_offsets"])], entry["dtype"]).reshape(entry["shape"])
        for name, entry in header.items()
    }


def read_directory(directory):
    """Every tensor of a directory, in one file or in the several that an index names."""
    index = directory / "model.safetensors.index.json"
    if not index.exists():
        return read_safetensors(directory / "model.safetensors")
    weight_map = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
    shards = {file: read_safetensors(directory / file) for file in sorted(set(weight_map.values()))}
    return {name: shards[file][name] for name, file in weight_map.items()}


def rms_norm(x, weight, epsilon):
    return x / np.sqrt(np.mean(x * x) + epsilon) * weight


def silu(x):
    return x / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


class Llama:
    """One sequence of a Llama in float32; a call takes the next token and returns the logits after it."""

    def __init__(self, directory):
        config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
        self.weights = read_directory(directory)
        self.heads = config["num_attention_heads"]
        self.groups = config["num_key_value_heads"]
        self.head_size = config.get("head_dim") or config["hidden_size"] // self.heads
        self.epsilon = config["rms_norm_eps"]
        theta = config.get("rope_theta") or config["rope_parameters"]["rope_theta"]
        self.frequencies = theta ** (-np.arange(0, self.head_size, 2) / self.head_size)
        self.head = "model.embed_tokens" if config["tie_word_embeddings"] else "lm_head"
        self.past = [([], []) for _ in range(config["num_hidden_layers"])]

    def weight(self, name):
        return self.weights[name + ".weight"]

    def rotate(self, x, position):
        """Turns dimension i of every head against dimension i + head_size/2."""
        angles = position * self.frequencies
        cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        low, high = np.split(x, 2, axis=-1)
        return np.concatenate([low * cos - high * sin, high * cos + low * sin], axis=-1)

    def attend(self, layer, x):
        prefix = f"model.layers.{layer}.self_attn."
        keys, values = self.past[layer]
        position = len(keys)
        query, key, value = (
            (self.weight(prefix + part) @ x).reshape(-1, self.head_size) for part in ("q_proj", "k_proj", "v_proj")
        )
        keys.append(self.rotate(key, position))
        values.append(value)
        query = self.rotate(query, position).reshape(self.groups, -1, self.head_size)
        scores = np.einsum("ghd,tgd->ght", query, np.stack(keys)) / np.float32(np.sqrt(self.head_size))
        mixed = np.einsum("ght,tgd->ghd", softmax(scores), np.stack(values))
        return self.weight(prefix + "o_proj") @ mixed.ravel()

    def feed_forward(self, layer, x):
        prefix = f"model.layers.{layer}.mlp."
        gate, up = self.weight(prefix + "gate_proj") @ x, self.weight(prefix + "up_proj") @ x
        return self.weight(prefix + "down_proj") @ (silu(gate) * up)

    def norm(self, name, x):
        return rms_norm(x, self.weight(name), self.epsilon)

    def __call__(self, token):
        x = self.weight("model.embed_tokens")[token]
        for layer in range(len(self.past)):
            prefix = f"model.layers.{layer}."
            x = x + self.attend(layer, self.norm(prefix + "input_layernorm", x))
            x = x + self.feed_forward(layer, self.norm(prefix + "post_attention_layernorm", x))
        return self.weight(self.head) @ self.norm("model.norm", x)


def greedy(model, prompt, count):
    """The `count` tokens that follow the prompt, and the logits after the prompt."""
    for token in prompt:
        logits = model(token)
    after_prompt, tokens = logits, []
    while True:
        tokens.append(int(np.argmax(logits)))
        if len(tokens) == count:
            return tokens, after_prompt
        logits = model(tokens[-1])


def read_vocabulary(path):
    """The pieces of a llama2.c tokenizer: an int32, then (float32 score, int32 length, bytes) for each piece."""
    raw, offset, pieces = path.read_bytes(), 4, []
    while offset < len(raw):
        (length,) = struct.unpack_from("<i", raw, offset + 4)
        pieces.append(raw[offset + 8 : offset + 8 + length])
        offset += 8 + length
    return pieces


def piece_bytes(piece):
    """The text of a piece; <0xHH> stands for one byte."""
    if len(piece) == 6 and piece.startswith(b"<0x"):
        return bytes([int(piece[3:5], 16)])
    return piece


def check_stories(directory, vocabulary, expected):
    """Decodes from BOS until the text, less its final newline, is complete or contradicted."""
    model, pieces = Llama(Path(directory)), read_vocabulary(Path(vocabulary))
    wanted, said, token = Path(expected).read_bytes().rstrip(b"\n"), b"", BOS
    for _ in wanted:
        token = int(np.argmax(model(token)))
        said = (said + piece_bytes(pieces[token])).lstrip(b" ")
        if said == wanted or not wanted.startswith(said):
            break
    print(f"forward: {len(said)} bytes decoded")
    return said == wanted


def check_greedy(directory, expected):
    facts = json.loads(Path(expected).read_text(encoding="utf-8"))
    ids, logits = greedy(Llama(Path(directory)), facts["prompt_ids"], len(facts["greedy_ids"]))
    worst = float(np.abs(logits - facts["logits_after_prompt"]).max())
    same = sum(a == b for a, b in zip(ids, facts["greedy_ids"]))
    print(f"forward: {same} of {len(ids)} tokens equal, logits differ by {worst:.2g} at most")
    return ids == facts["greedy_ids"] and worst <= LOGIT_TOLERANCE


def main(arguments):
    checks = {("stories", 4): check_stories, ("greedy", 3): check_greedy}
    check = checks.get((arguments[0] if arguments else "", len(arguments)))
    if check is None:
        sys.exit(__doc__)
    sys.exit(0 if check(*arguments[1:]) else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
