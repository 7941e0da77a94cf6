"""Tiny chat models of known make, and drafters for them: a token for every byte, a chat template, float32 weights.

With float32 weights, decoding in batches and one by one differ by a millionth, where a quantised target's ways of
decoding differ by percents; so what the caches hold can be compared closely. The counting pair says what is expected of
it, whatever the question: letters in their order. It knows nothing of the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from tests.drafter_files import CONTROL, Vocabulary, write_drafter, write_target

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_TEMPLATE_KEY = {"tokenizer.chat_template": TEMPLATE}
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<mask>")
END_OF_TEXT, START, END, MASK = range(256, 260)
LETTERS = tuple(b"abcdefghijklmnop")


def _alphabet() -> list[str]:
    """The characters that stand for the bytes 0..255 in GPT-2's vocabulary: printable ones for themselves."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


def vocabulary() -> Vocabulary:
    """Token i < 256 is the byte i, then come the special tokens, and one that only tokenising makes: "ab"."""
    alphabet = _alphabet()
    return Vocabulary(
        {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "default",
            "tokenizer.ggml.tokens": [*alphabet, *SPECIAL, "ab"],
            "tokenizer.ggml.token_type": [1] * 256 + [CONTROL] * len(SPECIAL) + [1],
            "tokenizer.ggml.merges": ["a b"],
            "tokenizer.ggml.bos_token_id": END_OF_TEXT,
            "tokenizer.ggml.eos_token_id": END,
            "tokenizer.ggml.add_bos_token": False,
        }
    )


def _edit(path: Path, changes: Mapping[str, NDArray[np.float32]]) -> None:
    """Overwrite tensors of a file in place."""
    reader = gguf.GGUFReader(path, "r+")
    for tensor in reader.tensors:
        if tensor.name in changes:
            tensor.data[:] = changes[tensor.name]
    reader.data.flush()


def _tensor(path: Path, name: str) -> NDArray[np.float32]:
    return next(np.array(tensor.data) for tensor in gguf.GGUFReader(path).tensors if tensor.name == name)


# --- a pair that wanders ----------------------------------------------------------------------------------------------

SAID = (*b"abcdefgh ,\n", END)  # what the wandering target says; mostly letters


def wandering_target(path: Path, *, metadata: Mapping[str, Any] | None = None, seed: int = 0) -> Path:
    """Random weights. It says one of a dozen tokens, of which one ends the answer, depending on all of the context."""
    write_target(path, vocabulary=vocabulary(), seed=seed, metadata={**_TEMPLATE_KEY, **(metadata or {})})
    head = _tensor(path, "output.weight")
    head[np.setdiff1d(np.arange(len(head)), SAID)] = 0
    _edit(path, {"output.weight": head})
    return path


def wandering_drafter(path: Path, version: int, **changes: Any) -> Path:
    """Random weights. It proposes what the wandering target says, so that some drafts are accepted, by chance."""
    return write_drafter(path, version=version, vocabulary=vocabulary(), d2t=SAID, mask_token=MASK, **changes)


# --- a pair that counts -----------------------------------------------------------------------------------------------


def counting_target(path: Path, ring: Sequence[int] = LETTERS, *, metadata: Mapping[str, Any] | None = None) -> Path:
    """Its answer begins with the ring's first token; each token of the ring is followed by the next one."""
    write_target(path, vocabulary=vocabulary(), metadata={**_TEMPLATE_KEY, **(metadata or {})})
    embeddings = _tensor(path, "token_embd.weight")  # [V, H], nearly orthogonal
    head = np.zeros_like(embeddings)
    before = (*ring[-1:], *ring[:-1])
    head[list(ring)] = embeddings[list(before)]
    head[ring[0]] += embeddings[ord("\n")]  # the last token of a rendered question
    nothing = {
        tensor.name: np.zeros(tensor.shape[::-1], np.float32)
        for tensor in gguf.GGUFReader(path).tensors
        if tensor.name.endswith(("attn_output.weight", "ffn_down.weight"))
    }
    _edit(path, {"output.weight": head} | nothing)
    return path


def counting_drafter(path: Path, ring: Sequence[int] = LETTERS) -> Path:
    """A DFlash 2 drafter that is always right: its selector knows which token follows which, the rest adds nothing."""
    words = vocabulary()
    width, rank, layers = 96, 32, 2
    rng = np.random.default_rng(3)
    embeddings = rng.standard_normal((len(words), width), np.float32)
    hidden = embeddings[MASK] / np.sqrt(np.square(embeddings[MASK]).mean())  # of every position: the mask's, normed
    predecessor, successor = np.zeros((2, len(words), rank), np.float32)
    for index, token in enumerate(ring):
        predecessor[token, index] = 1
        successor[ring[(index + 1) % len(ring)], index] = 10
    tensors: dict[str, NDArray[Any] | None] = {
        "token_embd.weight": embeddings,
        "output_norm.weight": np.ones(width, np.float32),
        "output.weight": np.zeros((len(ring), width), np.float32),
        "selector_predecessor.weight": predecessor,
        "selector_successor.weight": successor,
        "selector_hidden.weight": np.tile(hidden / np.square(hidden).sum(), (rank, 1)),
    }
    for layer in range(layers):
        tensors[f"blk.{layer}.attn_output.weight"] = np.zeros((width, 4 * 32), np.float32)
        tensors[f"blk.{layer}.ffn_down.weight"] = np.zeros((width, 160), np.float32)
    return write_drafter(
        path,
        version=2,
        vocabulary=words,
        mask_token=MASK,
        d2t=tuple(ring),
        selector_rank=rank,
        selector_top_k=len(ring),
        tensors=tensors,
    )
