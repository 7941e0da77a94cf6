"""The `config.json` of a DFlash or DFlash 2 drafter in safetensors form, as metadata of the GGUF architecture `dflash`.

Values stand in `dflash_config` or beside it; the nested one counts, as in the torch reference (PyPI `dflash` 0.1.0).
What decides the numbers is never guessed: where it is missing or of an unknown kind, that is an error. Knows nothing of
tensors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.drafter_config import MAX_LAYERS
from engine.errors import ModelFileError

_MISSING = object()
_MOST = 2**31 - 1  # the file's arrays hold no larger whole numbers
_LARGEST = 1e38  # nor does a float32


class HfConfig:
    """Reads one config; raises `ModelFileError` for what is missing or wrong. `file` is its name in sentences."""

    def __init__(self, values: Mapping[str, Any], file: str) -> None:
        self._values = values
        nested = values.get("dflash_config")
        if not isinstance(nested, dict):
            raise ModelFileError(
                f"{file} has no 'dflash_config', so it does not describe a DFlash drafter; "
                "choose the folder of a DFlash or DFlash 2 drafter."
            )
        self._nested: Mapping[str, Any] = nested
        self.file = file
        self.notes: list[str] = []  # sentences about what the file format cannot say

    def value(self, name: str, default: Any = _MISSING) -> Any:
        """A null counts as absent."""
        found = self._nested.get(name)
        found = self._values.get(name) if found is None else found
        if found is not None:
            return found
        if default is _MISSING:
            raise ModelFileError(f"{self.file} lacks '{name}'; get the drafter from another source.")
        return default

    def count(self, name: str, default: Any = _MISSING, least: int = 1) -> int:
        found = self.value(name, default)
        if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= _MOST:
            raise self.wrong(name, found, f"a whole number from {least} to {_MOST:,}")
        return found

    def number(self, name: str, default: Any = _MISSING) -> float:
        return self.as_number(name, self.value(name, default))

    def as_number(self, name: str, found: Any) -> float:
        if not isinstance(found, (int, float)) or isinstance(found, bool) or not abs(found) <= _LARGEST:
            raise self.wrong(name, found, "a number")
        return float(found)

    def wrong(self, name: str, found: Any, wanted: str) -> ModelFileError:
        return ModelFileError(
            f"{self.file} gives '{name}' as {found!r}, which is not {wanted}; get the drafter from another source."
        )

    # --- what the converter asks

    @property
    def vocabulary(self) -> int:
        return self.count("vocab_size")

    @property
    def hidden_size(self) -> int:
        return self.count("hidden_size")

    @property
    def layers(self) -> int:
        found = self.count("num_hidden_layers")
        if found > MAX_LAYERS:
            raise self.wrong("num_hidden_layers", found, f"a number of layers up to {MAX_LAYERS}")
        return found

    @property
    def head_dim(self) -> int:
        return self.count("head_dim", self.hidden_size // self.count("num_attention_heads"))

    @property
    def mask_token(self) -> int:
        return self.count("mask_token_id", least=0)

    def metadata(self, second: bool, target_sections: bool) -> dict[str, Any]:
        """The keys `dflash.…`. `second`: of DFlash 2. `target_sections`: the target has M-RoPE."""
        layers = self._target_layers()
        keys: dict[str, Any] = {
            "block_count": self.layers,
            "context_length": self.count("max_position_embeddings"),
            "embedding_length": self.hidden_size,
            "feed_forward_length": self.count("intermediate_size"),
            "attention.head_count": self.count("num_attention_heads"),
            "attention.head_count_kv": self.count("num_key_value_heads", self.count("num_attention_heads")),
            "attention.key_length": self.head_dim,
            "attention.value_length": self.head_dim,
            "attention.layer_norm_rms_epsilon": self.number("rms_norm_eps"),
            "vocab_size": self.vocabulary,
            "block_size": self.count("block_size", 16, least=2),
            "target_layers": np.array(layers, np.int32),
        }
        if second:
            for name in ("conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k"):
                keys[name] = self.count(name)
        keys |= self._scales() | self._attention() | self._rope()
        if target_sections:
            keys["rope.dimension_sections"] = np.array([self.head_dim // 2, 0, 0, 0], np.int32)
        activation = self.value("hidden_act", "silu")
        if activation != "silu":
            keys["hidden_activation"] = str(activation)
        return {f"dflash.{name}": value for name, value in keys.items()}

    def rope_factors(self) -> NDArray[np.float32] | None:
        """[head_dim / 2] by which each frequency is divided, where the positions are stretched as in Llama 3."""
        rope = self._rope_values()
        if _rope_kind(rope) != "llama3":
            return None
        factor, low, high, original = (
            self.as_number(f"rope {name}", rope.get(name))
            for name in ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
        )
        if not (factor > 0 and low < high):
            raise self.wrong("rope factors", [factor, low, high], "a factor above 0 and two bounds that rise")
        frequencies = self._theta() ** (-np.arange(0, self.head_dim, 2) / self.head_dim)
        turns = original * frequencies / (2 * math.pi)  # that a frequency makes within the original context
        smooth = np.clip((turns - low) / (high - low), 0, 1)
        factors: NDArray[np.float32] = (1 / ((1 - smooth) / factor + smooth)).astype(np.float32)
        return factors

    # --- parts

    def _target_layers(self) -> list[int]:
        """The file counts what enters a layer, the config what leaves it."""
        found = self.value("target_layer_ids")
        whole = isinstance(found, list) and all(
            isinstance(i, int) and not isinstance(i, bool) and 0 <= i < _MOST for i in found
        )
        if not whole or not found:
            raise self.wrong("target_layer_ids", found, "a list of layer numbers from 0 on")
        return [i + 1 for i in found]

    def _scales(self) -> dict[str, Any]:
        names = {
            "logit_scale": "output_multiplier",
            "final_logit_softcapping": "final_logit_softcapping",
            "embedding_scale": "input_embedding_scale",
            "attention.value_scale": "attention_value_scale",
        }
        return {key: self.number(name) for key, name in names.items() if self.value(name, None) is not None}

    def _attention(self) -> dict[str, Any]:
        """Which layers see a window of positions only, and whether the block attends causally.

        In the reference a sliding layer is causal where `is_causal` is unset. llama.cpp has one setting for all layers;
        where they differ, a key of our own says so, and a note that others do not know it.
        """
        window, sliding = self._window()
        causal = self.value("is_causal", None)
        if causal is None:
            of_all = set(sliding) if self.value("use_swa", False) is not True else {False}
            causal = of_all == {True}
            if len(of_all) > 1:
                self.notes.append(
                    "Its sliding layers attend causally within the block and the others do not. This program follows "
                    "that; in llama.cpp all layers attend in both directions, so fewer drafts may be accepted there."
                )
        elif not isinstance(causal, bool):
            raise self.wrong("is_causal", causal, "true or false")
        keys: dict[str, Any] = {"attention.causal": causal}
        if self.notes:
            keys["attention.sliding_causal"] = True
        if window and any(sliding):
            keys |= {
                "attention.sliding_window": window,
                "attention.sliding_window_pattern": np.array(sliding, np.bool_),
            }
        return keys

    def _window(self) -> tuple[int, list[bool]]:
        """How many positions a sliding layer sees (0: all), and which layers slide."""
        if self.value("use_swa", False) is True:
            return self.count("swa_window_size", self.value("sliding_window", None)), [True] * self.layers
        types = self.value("layer_types", ["full_attention"] * self.layers)
        known = ("full_attention", "sliding_attention")
        if not isinstance(types, list) or len(types) != self.layers or any(kind not in known for kind in types):
            raise self.wrong("layer_types", types, f"a list of {self.layers} times {' or '.join(known)}")
        sliding = [kind == "sliding_attention" for kind in types]
        if not any(sliding) or self.value("use_sliding_window", True) is False:
            return 0, sliding
        return self.count("sliding_window"), sliding

    def _rope_values(self) -> Mapping[str, Any]:
        for name in ("rope_parameters", "rope_scaling"):
            found = self.value(name, None)
            if isinstance(found, dict):
                return found
        return {}

    def _theta(self) -> float:
        found = self._rope_values().get("rope_theta")
        return self.number("rope_theta") if found is None else self.as_number("rope_theta", found)

    def _rope(self) -> dict[str, Any]:
        rope = self._rope_values()
        keys: dict[str, Any] = {"rope.freq_base": self._theta()}
        partial = rope.get("partial_rotary_factor", self.value("partial_rotary_factor", None))
        # The reference is built on Qwen3, which has no such setting: a value there is left over from the target.
        if partial is not None and self.value("model_type", "qwen3") != "qwen3":
            keys["rope.dimension_count"] = int(self.head_dim * self.as_number("partial_rotary_factor", partial))
        kind = _rope_kind(rope)
        if kind in ("default", "llama3"):
            return keys
        if kind not in ("linear", "yarn"):
            raise ModelFileError(
                f"{self.file} scales its positions by {kind!r}, which is not supported; "
                "choose a drafter with linear, YaRN or Llama 3 scaling, or none."
            )
        factor = self.as_number("rope factor", rope.get("factor"))
        if not factor > 0:
            raise self.wrong("rope factor", factor, "above 0")
        keys |= {"rope.scaling.type": kind, "rope.scaling.factor": factor}
        if kind == "linear":
            return keys
        keys["rope.scaling.original_context_length"] = self.count(
            "original_max_position_embeddings",
            rope.get("original_max_position_embeddings") or self.count("max_position_embeddings"),
        )
        if (attention := rope.get("attention_factor")) is not None:
            # ggml multiplies by 1 + 0.1 ln(factor) on its own, which is also what an absent value means
            own = 1 + 0.1 * math.log(factor)
            keys["rope.scaling.attn_factor"] = self.as_number("attention_factor", attention) / own
        for name in ("beta_fast", "beta_slow"):
            if rope.get(name) is not None:
                keys[f"rope.scaling.yarn_{name}"] = self.as_number(name, rope[name])
        return keys


def _rope_kind(rope: Mapping[str, Any]) -> str:
    return str(rope.get("rope_type") or rope.get("type") or "default")
