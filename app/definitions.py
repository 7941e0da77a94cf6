"""What the figures shown are called, what they mean, and how they are written: the one place for labels and tooltips.

The names are those of `engine.events.AnswerStatistics` and `Memory`; the definitions are those of `engine/stats.py`,
which computes them. Knows nothing of widgets.
"""

from __future__ import annotations

from dataclasses import dataclass

NOT_YET = "–"  # nothing has been measured
NONE = "none"  # measured, and there was nothing to measure


@dataclass(frozen=True)
class Figure:
    """`pattern` formats a value that is not None; `scale` is applied before."""

    label: str
    unit: str
    meaning: str
    pattern: str = "{:.2f}"
    scale: float = 1.0

    def text(self, value: float | int | None) -> str:
        return NONE if value is None else self.pattern.format(value if self.scale == 1.0 else value * self.scale)


FIGURES = {
    "tokens_per_second": Figure(
        "Speed",
        "tokens/s",
        "Tokens behind the first one, divided by the time from the first token to the newest. "
        "The reading of the prompt has no part in it.",
        "{:.1f}",
    ),
    "time_to_first_token_s": Figure(
        "First token", "s", "Seconds from the moment the question arrived at the engine to the answer's first token."
    ),
    "prompt_tokens_per_second": Figure(
        "Prompt reading",
        "tokens/s",
        "Prompt tokens that were read, divided by the time spent reading them. "
        "Tokens taken from the cache are not among them.",
        "{:,.0f}",
    ),
    "acceptance_length": Figure(
        "Acceptance length",
        "tokens",
        "Tokens emitted by verification passes, divided by the number of verification passes: the drafts that were "
        "accepted and one token of the target's own. 1 means that no draft was accepted.",
    ),
    "tokens_per_target_pass": Figure(
        "Tokens per target pass",
        "",
        "All tokens emitted by target passes, divided by all target passes behind the prompt, plain ones included: "
        "what drafting saves. Without drafts it is exactly 1.",
    ),
    "acceptance_rate": Figure(
        "Drafts accepted", "%", "Drafts accepted, divided by drafts that were verified.", "{:.0f}", 100.0
    ),
    "draft_ms": Figure("Draft", "ms", "Mean time of a draft step: the drafter proposes one block of tokens.", "{:.1f}"),
    "verify_ms": Figure(
        "Verify", "ms", "Mean time of a verification pass: the target checks the drafts of one block.", "{:.1f}"
    ),
    "verification_passes": Figure(
        "Verification passes", "", "Target passes that checked at least one draft.", "{:,}"
    ),
}  # fmt: skip

ACCEPTANCE_BY_POSITION = Figure(
    "Acceptance by position",
    "%",
    "Position k: among the cycles in which draft k was verified, the share in which drafts 1 to k were all accepted.",
    "{:.0f}",
    100.0,
)

MEMORY = {
    "target_weights": Figure("Target weights", "", "The target's weights, as they lie in memory."),
    "target_context": Figure("Target context", "", "The target's keys and values, and the buffers it computes in."),
    "drafter_weights": Figure(
        "Drafter weights",
        "",
        "The drafters' own weights, copies in a faster type included. What they share with the target is not.",
    ),
    "drafter_kv": Figure("Drafter keys and values", "", "The drafters' caches."),
    "other": Figure("Everything else", "", "What else the engine process holds: libraries, vocabulary, scratch space."),
}  # fmt: skip

PROCESS_MEMORY = (
    "What the engine process holds in memory now (its resident set). The window is another process and not in it."
)
CONTEXT = "Tokens of the conversation that the model has before it, of those that the loaded context can hold."
MODES = {
    "baseline": "The target alone: one token per pass.",
    "dflash": "A drafter proposes a block of tokens, each position on its own; the target verifies them in one pass.",
    "dflash2": "As DFlash, and a selector picks drafts that follow each other; the target verifies them in one pass.",
}


def bytes_text(count: int) -> str:
    """Bytes for people, in binary units."""
    if count < 1 << 20:
        return f"{count / 1024:.0f} KiB"
    if count < 1 << 30:
        return f"{count / (1 << 20):.0f} MiB"
    return f"{count / (1 << 30):.2f} GiB"
