"""The dataclasses that leave the engine: the one contract with the window, the command line and the benchmark.

They hold plain Python values, so they can be pickled, compared and printed. They know nothing of how they were made.
What was not measured is `None`, never 0: a rate over no drafts is "none".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Mode(str, Enum):
    """How an answer is decoded. The value is what the command line and the settings write."""

    BASELINE = "baseline"
    DFLASH = "dflash"
    DFLASH2 = "dflash2"


class StopReason(str, Enum):
    STOP_TOKEN = "stop_token"
    MAX_TOKENS = "max_tokens"
    CONTEXT_FULL = "context_full"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class SamplerSettings:
    """The user's sampler settings. Order of application: penalties, top-k, top-p, min-p, temperature (llama.cpp's)."""

    temperature: float = 0.0  # 0 = greedy: the argmax of the penalised logits
    top_k: int = 40  # 0 = off
    top_p: float = 0.95  # 1 = off
    min_p: float = 0.05  # 0 = off
    repetition_penalty: float = 1.0  # 1 = off
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    penalty_last_n: int = 64  # how many of the newest tokens the penalties look at; -1 = all
    seed: int | None = None  # None = a new one for every answer


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes by part, of the process that runs the engine. `None`: there is no such part."""

    process: int  # resident set now
    peak: int  # resident set at its highest
    target_weights: int
    target_context: int
    drafter_weights: int | None = None  # includes copies in a faster type, if one was chosen
    drafter_kv: int | None = None
    offloaded: int | None = None  # of these parts, what lies in a device's own memory and so not in `process`


@dataclass(frozen=True, slots=True)
class AnswerStatistics:
    """Everything measured about one answer; the same object serves live figures, `--json` and the benchmark.

    Definitions stand in `engine/stats.py`, which computes it.
    """

    mode: Mode
    target: str  # file name
    drafter: str | None  # file name, None in baseline
    prompt_tokens: int  # tokens of the whole prompt, cached ones included
    prompt_tokens_cached: int  # of these, taken from the cache
    output_tokens: int
    tokens_per_second: float | None  # decoding only
    prompt_tokens_per_second: float | None
    time_to_first_token_s: float | None
    tokens_per_target_pass: float | None
    acceptance_length: float | None
    acceptance_rate: float | None
    acceptance_by_position: tuple[float | None, ...]  # index k-1: position k
    verification_passes: int
    target_passes: int  # target decodes after the prompt
    drafted_tokens: int  # drafts sent to verification
    accepted_tokens: int
    draft_ms: float | None  # mean per draft step
    verify_ms: float | None  # mean per verification pass
    memory: Memory
    stop_reason: StopReason | None = None  # None while the answer runs
    plain_tokens_per_second: float | None = None  # what plain decoding would give, as measured for this pair
    speed_up: float | None = None  # over that
    decision: str | None = None  # why so many drafts, in words
    draft_length: int | None = None  # drafts verified in the newest cycle; None in baseline


# A turn that a conversation is restored from: question, answer, and the answer's token ids where they are known.
KnownTurn = tuple[str, str] | tuple[str, str, tuple[int, ...] | None]


@dataclass(frozen=True, slots=True)
class TargetInfo:
    """What a loaded target is."""

    path: str
    name: str  # general.name, else the file name
    architecture: str
    quantisation: str  # such as "IQ4_NL"
    parameters: int
    file_bytes: int
    context_served: int  # tokens this context can hold
    context_trained: int
    vocabulary: int
    hidden_size: int
    layers: int
    device: str  # of the output layer, such as "CPU"


@dataclass(frozen=True, slots=True)
class ModeInfo:
    """One entry of the mode switch: usable when `reason` is None, else shown disabled with that sentence."""

    mode: Mode
    drafter: str | None  # path of the drafter file
    reason: str | None


# --- events, in the order in which a listener sees them ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """Loading `part` ("target", "drafter", "measuring", "faster copy") has come to `fraction` of 1."""

    part: str
    fraction: float


@dataclass(frozen=True, slots=True)
class Loaded:
    """The target is ready; `modes` always has all three entries, in the order of `Mode`."""

    target: TargetInfo
    modes: tuple[ModeInfo, ...]
    memory: Memory


@dataclass(frozen=True, slots=True)
class ModesFound:
    """Drafters were looked for again: `modes` replaces that of `Loaded`."""

    modes: tuple[ModeInfo, ...]


@dataclass(frozen=True, slots=True)
class PromptProgress:
    """`done` of `total` prompt tokens that were not cached have been read. `again`: read before, without features."""

    done: int
    total: int
    again: bool = False


@dataclass(frozen=True, slots=True)
class ContextNotice:
    """Something a person should know about the context. `kind`: "nearly_full", "dropped" or "drafter"."""

    kind: str
    used: int
    size: int
    sentence: str
    dropped_turns: int = 0


@dataclass(frozen=True, slots=True)
class Tokens:
    """What one cycle emitted. `text` holds only finished characters and may be empty while one is incomplete."""

    ids: tuple[int, ...]
    origins: tuple[int, ...]  # per token: k >= 1 = accepted draft of block position k, 0 = the target's own
    text: str
    pieces: tuple[bytes, ...] = ()  # per token: the bytes it stands for, not always whole characters
    # Per token, where asked for: the target's likeliest tokens there as (text, probability), best first.
    candidates: tuple[tuple[tuple[str, float], ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """Live figures while an answer runs, a few times a second. `context_used` counts tokens in the context."""

    statistics: AnswerStatistics
    context_used: int
    context_size: int


@dataclass(frozen=True, slots=True)
class Answered:
    """The end of an answer, also of a cancelled one.

    Text and ids are of the whole answer, also where it was continued; the statistics are of what was added now.
    """

    text: str
    token_ids: tuple[int, ...]  # without the stop token
    statistics: AnswerStatistics
    context_used: int
    context_size: int


@dataclass(frozen=True, slots=True)
class Counted:
    """How many tokens a text has, by the loaded target's vocabulary; None: no model is loaded."""

    tokens: int | None
    tag: str = ""  # of the question


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """Something that can hold a model's layers and compute them. Bytes; the CPU's memory is the machine's."""

    name: str  # such as "CPU" or "CUDA0": what `LoadSettings.device` takes
    description: str  # such as the processor's name
    kind: str  # "cpu", "gpu" or "igpu" (shares the machine's memory)
    free: int | None
    total: int | None


@dataclass(frozen=True, slots=True)
class DevicesListed:
    """The devices that this build of llama.cpp can use here; the CPU is always one of them, and the last."""

    devices: tuple[DeviceInfo, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """A request ended with an error. `kind` is the error type's name, `sentence` for people, `detail` for the log."""

    kind: str
    sentence: str
    detail: str = ""


Event = (
    LoadProgress
    | Loaded
    | ModesFound
    | PromptProgress
    | ContextNotice
    | Tokens
    | Progress
    | Answered
    | Counted
    | DevicesListed
    | Failed
)


KV_TYPES = ("f16", "q8_0", "q4_0")  # 2, 1.06 and 0.56 bytes a value
# When a conversation outgrows the context: leave out the oldest turns but the system prompt, or answer no more.
OVERFLOW_RULES = ("drop", "stop")


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """How to load a target. Paths are of this machine; None for a drafter: take what the catalogue finds."""

    target: str | None = None  # None = the embedded model
    drafters: Mapping[Mode, str] = field(default_factory=dict)  # given by the user: taken instead of the catalogue's
    context: int = 4096  # tokens; cut to what the model was trained for
    threads: int | None = None  # None = physical cores
    gpu_layers: int = -1  # -1 = all that the build can offload
    sequences: int = 1
    device: str | None = None  # a `DeviceInfo.name`; None = what libllama chooses; "CPU" = nothing is offloaded
    kv_type: str = "f16"  # of the target's keys and values: one of KV_TYPES
    overflow: str = "drop"  # one of OVERFLOW_RULES
