"""What drafting does in an answer, in plain sentences: what it gained, or why it is off or gains nothing.

Reads a `ChatState`; computes nothing. Knows nothing of widgets.
"""

from __future__ import annotations

from pathlib import Path

from app.definitions import FIGURES, mode_name
from app.engine_words import in_words
from app.i18n import translate
from app.state import ChatState
from engine.events import AnswerStatistics, Mode

EVEN = 0.02  # a speed-up nearer to 1 than this is none
RECENT = 30  # turns that are looked through


def gain_sentence(statistics: AnswerStatistics | None) -> str:
    """How the answer's speed compares with plain decoding, as measured; empty where there is nothing to compare."""
    if statistics is None or statistics.mode is Mode.BASELINE:
        return ""
    if statistics.plain_tokens_per_second is None or statistics.speed_up is None:
        return translate("Drafting", "Plain decoding has not been measured with this model yet.")
    plain = FIGURES["plain_tokens_per_second"].with_unit(statistics.plain_tokens_per_second)
    times = FIGURES["speed_up"].text(statistics.speed_up)
    if statistics.speed_up > 1 + EVEN:
        words = translate("Drafting", "{times} times as fast as plain decoding ({plain}).")
    elif statistics.speed_up < 1 - EVEN:
        words = translate(
            "Drafting", "Drafting costs more than it gains here: {times} of the speed of plain decoding ({plain})."
        )
    else:
        words = translate("Drafting", "As fast as plain decoding ({plain}): drafting gains nothing here.")
    return words.format(times=times, plain=plain)


def drafting_sentence(state: ChatState) -> str:
    """Who drafts, or why nobody does."""
    statistics = state.statistics
    if statistics is None:
        return _before_an_answer(state)
    if statistics.mode is Mode.BASELINE:
        return translate("Drafting", "Drafting is off: the target decodes alone.")
    words = translate("Drafting", "Drafter: {name}").format(name=statistics.drafter)
    if statistics.stop_reason is not None and not statistics.drafted_tokens:
        words += ". " + translate("Drafting", "Nothing was drafted in this answer.")
    return words


def _before_an_answer(state: ChatState) -> str:
    if state.target is None:
        return translate("Drafting", "No model is loaded.")
    if state.mode is Mode.BASELINE:
        if all(info.reason for info in state.modes if info.mode is not Mode.BASELINE):
            return translate("Drafting", "No drafter is there for this model: the target decodes alone.")
        return translate("Drafting", "Drafting is off: the target decodes alone.")
    drafter = next((info.drafter for info in state.modes if info.mode is state.mode), None)
    return translate("Drafting", "Drafter: {name}").format(name=Path(drafter).name) if drafter else ""


def measured_by_mode(state: ChatState) -> dict[Mode, str]:
    """What each mode reached in its newest answer of this conversation, in a sentence; for modes used lately."""
    found: dict[Mode, str] = {}
    for turn in state.conversation.turns[: -1 - RECENT : -1]:
        answer = turn.statistics
        if answer is None or answer.mode in found or answer.tokens_per_second is None:
            continue
        speed = FIGURES["tokens_per_second"].with_unit(answer.tokens_per_second)
        if answer.acceptance_length is None:
            words = translate("Drafting", "Its last answer here: {speed}.").format(speed=speed)
        else:
            length = FIGURES["acceptance_length"].text(answer.acceptance_length)
            words = translate("Drafting", "Its last answer here: {speed}, acceptance length {length}.")
            words = words.format(speed=speed, length=length)
        found[answer.mode] = words
    return found


def missing_sentences(state: ChatState) -> list[str]:
    """Why modes cannot be used, a sentence each."""
    words = translate("Drafting", "{mode} is not available. {reason}")
    return [
        words.format(mode=mode_name(info.mode), reason=in_words(info.reason)) for info in state.modes if info.reason
    ]
