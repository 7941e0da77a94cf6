"""What the figures shown are called, what they mean, and how they are written: the one place for labels and tooltips.

The names are those of `engine.events.AnswerStatistics` and `Memory`; the definitions are those of `engine/stats.py`,
which computes them. Knows nothing of widgets.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.i18n import QT_TRANSLATE_NOOP, translate
from engine.events import Mode
from engine.stats import MODE_NAMES

NOT_YET = "–"  # nothing has been measured
NONE = QT_TRANSLATE_NOOP("Figures", "none")  # measured, and there was nothing to measure


def none_text() -> str:
    return translate("Figures", NONE)


@dataclass(frozen=True)
class Figure:
    """`pattern` formats a value; `scale` is applied before. The words are translated when asked for."""

    _label: str
    _unit: str
    _meaning: str
    pattern: str = "{:.2f}"
    scale: float = 1.0

    @property
    def label(self) -> str:
        return translate("Figures", self._label)

    @property
    def unit(self) -> str:
        return translate("Figures", self._unit) if self._unit else ""

    @property
    def meaning(self) -> str:
        return translate("Figures", self._meaning)

    def text(self, value: float | int | None) -> str:
        """The value alone."""
        if value is None:
            return none_text()
        return self.pattern.format(value if self.scale == 1.0 else value * self.scale)

    def with_unit(self, value: float | int | None) -> str:
        if value is None or not self._unit:
            return self.text(value)
        return f"{self.text(value)} {self.unit}"


FIGURES = {
    "tokens_per_second": Figure(
        QT_TRANSLATE_NOOP("Figures", "Speed"),
        QT_TRANSLATE_NOOP("Figures", "tokens/s"),
        QT_TRANSLATE_NOOP(
            "Figures",
            "Tokens behind the first one, divided by the time from the first token to the newest. "
            "The reading of the prompt has no part in it.",
        ),
        "{:.1f}",
    ),
    "speed_up": Figure(
        QT_TRANSLATE_NOOP("Figures", "Speed-up"),
        QT_TRANSLATE_NOOP("Figures", "times"),
        QT_TRANSLATE_NOOP(
            "Figures",
            "The speed of this answer, divided by the speed of plain decoding that was measured with this model on "
            "this machine. 1 means that drafting gained nothing.",
        ),
    ),
    "plain_tokens_per_second": Figure(
        QT_TRANSLATE_NOOP("Figures", "Plain decoding"),
        QT_TRANSLATE_NOOP("Figures", "tokens/s"),
        QT_TRANSLATE_NOOP(
            "Figures",
            "What the target alone reaches on this machine with this much context, one token per pass: measured.",
        ),
        "{:.1f}",
    ),
    "time_to_first_token_s": Figure(
        QT_TRANSLATE_NOOP("Figures", "First token"),
        QT_TRANSLATE_NOOP("Figures", "s"),
        QT_TRANSLATE_NOOP(
            "Figures", "Seconds from the moment the question arrived at the engine to the answer's first token."
        ),
    ),
    "prompt_tokens_per_second": Figure(
        QT_TRANSLATE_NOOP("Figures", "Prompt reading"),
        QT_TRANSLATE_NOOP("Figures", "tokens/s"),
        QT_TRANSLATE_NOOP(
            "Figures",
            "Prompt tokens that were read, divided by the time spent reading them. "
            "Tokens taken from the cache are not among them.",
        ),
        "{:,.0f}",
    ),
    "acceptance_length": Figure(
        QT_TRANSLATE_NOOP("Figures", "Acceptance length"),
        QT_TRANSLATE_NOOP("Figures", "tokens"),
        QT_TRANSLATE_NOOP(
            "Figures",
            "Tokens emitted by verification passes, divided by the number of verification passes: the drafts that were "
            "accepted and one token of the target's own. 1 means that no draft was accepted.",
        ),
    ),
    "tokens_per_target_pass": Figure(
        QT_TRANSLATE_NOOP("Figures", "Tokens per target pass"),
        "",
        QT_TRANSLATE_NOOP(
            "Figures",
            "All tokens emitted by target passes, divided by all target passes behind the prompt, plain ones included: "
            "what drafting saves. Without drafts it is exactly 1.",
        ),
    ),
    "acceptance_rate": Figure(
        QT_TRANSLATE_NOOP("Figures", "Drafts accepted"),
        "%",
        QT_TRANSLATE_NOOP("Figures", "Drafts accepted, divided by drafts that were verified."),
        "{:.0f}",
        100.0,
    ),
    "draft_length": Figure(
        QT_TRANSLATE_NOOP("Figures", "Draft length"),
        QT_TRANSLATE_NOOP("Figures", "tokens"),
        QT_TRANSLATE_NOOP("Figures", "How many drafts were sent to verification in the newest cycle; 0: a plain pass."),
        "{}",
    ),
    "draft_ms": Figure(
        QT_TRANSLATE_NOOP("Figures", "Draft"),
        QT_TRANSLATE_NOOP("Figures", "ms"),
        QT_TRANSLATE_NOOP("Figures", "Mean time of a draft step: the drafter proposes one block of tokens."),
        "{:.1f}",
    ),
    "verify_ms": Figure(
        QT_TRANSLATE_NOOP("Figures", "Verify"),
        QT_TRANSLATE_NOOP("Figures", "ms"),
        QT_TRANSLATE_NOOP("Figures", "Mean time of a verification pass: the target checks the drafts of one block."),
        "{:.1f}",
    ),
    "verification_passes": Figure(
        QT_TRANSLATE_NOOP("Figures", "Verification passes"),
        "",
        QT_TRANSLATE_NOOP("Figures", "Target passes that checked at least one draft."),
        "{:,}",
    ),
}

ACCEPTANCE_BY_POSITION = Figure(
    QT_TRANSLATE_NOOP("Figures", "Acceptance by position"),
    "%",
    QT_TRANSLATE_NOOP(
        "Figures",
        "Position k: among the cycles in which draft k was verified, the share in which drafts 1 to k were all "
        "accepted.",
    ),
    "{:.0f}",
    100.0,
)
SPEED_CURVE = Figure(
    QT_TRANSLATE_NOOP("Figures", "Speed over time"),
    QT_TRANSLATE_NOOP("Figures", "tokens/s"),
    QT_TRANSLATE_NOOP(
        "Figures",
        "Each point: the tokens that came since the point before, divided by the time they took. The dashed line is "
        "plain decoding, as measured on this machine.",
    ),
    "{:.1f}",
)
ACCEPTANCE_HISTORY = Figure(
    QT_TRANSLATE_NOOP("Figures", "Over the answers"),
    QT_TRANSLATE_NOOP("Figures", "tokens"),
    QT_TRANSLATE_NOOP(
        "Figures",
        "The acceptance length of each answer of this conversation, oldest first. An answer without drafts has none.",
    ),
)

MEMORY = {
    "target_weights": Figure(
        QT_TRANSLATE_NOOP("Figures", "Target weights"),
        "",
        QT_TRANSLATE_NOOP("Figures", "The target's weights, as they lie in memory."),
    ),
    "target_context": Figure(
        QT_TRANSLATE_NOOP("Figures", "Target context"),
        "",
        QT_TRANSLATE_NOOP("Figures", "The target's keys and values, and the buffers it computes in."),
    ),
    "drafter_weights": Figure(
        QT_TRANSLATE_NOOP("Figures", "Drafter weights"),
        "",
        QT_TRANSLATE_NOOP(
            "Figures",
            "The drafters' own weights, copies in a faster type included. What they share with the target is not.",
        ),
    ),
    "drafter_kv": Figure(
        QT_TRANSLATE_NOOP("Figures", "Drafter keys and values"),
        "",
        QT_TRANSLATE_NOOP("Figures", "The drafters' caches."),
    ),
    "other": Figure(
        QT_TRANSLATE_NOOP("Figures", "Everything else"),
        "",
        QT_TRANSLATE_NOOP("Figures", "What else the engine process holds: libraries, vocabulary, scratch space."),
    ),
}


def process_memory_meaning() -> str:
    return translate(
        "Figures",
        "What the engine process holds in memory now (its resident set), of the memory this machine has. "
        "The window is another process and not in it.",
    )


def context_meaning(overflow: str) -> str:
    """`overflow`: the rule, one of `engine.events.OVERFLOW_RULES`."""
    meaning = translate(
        "Figures",
        "Tokens of the conversation that the model has before it, of those that the loaded context can hold.",
    )
    if overflow == "drop":
        rule = translate(
            "Figures", "When it is full, the oldest questions and answers are left out; the system prompt stays."
        )
    else:
        rule = translate("Figures", "When it is full, the answer ends there; go on in a new conversation.")
    return f"{meaning}\n\n{rule}"


_MODES = {
    Mode.BASELINE: QT_TRANSLATE_NOOP("Modes", "The target alone: one token per pass."),
    Mode.DFLASH: QT_TRANSLATE_NOOP(
        "Modes",
        "A drafter proposes a block of tokens, each position on its own; the target verifies them in one pass.",
    ),
    Mode.DFLASH2: QT_TRANSLATE_NOOP(
        "Modes", "As DFlash, and a selector picks drafts that follow each other; the target verifies them in one pass."
    ),
}


def mode_name(mode: Mode) -> str:
    """DFlash and DFlash 2 are names and stay; the baseline is a word."""
    return translate("Modes", "Baseline") if mode is Mode.BASELINE else MODE_NAMES[mode]


def mode_meaning(mode: Mode) -> str:
    return translate("Modes", _MODES[mode])


def bytes_text(count: int) -> str:
    """Bytes for people, in binary units."""
    if count < 1 << 10:
        return f"{count} B"
    if count < 1 << 20:
        return f"{count / 1024:.0f} KiB"
    if count < 1 << 30:
        return f"{count / (1 << 20):.0f} MiB"
    return f"{count / (1 << 30):.2f} GiB"
