"""The engine's sentences in the language of the window.

The engine knows no languages; it says what happened in English sentences, whose words stand here once more as patterns.
A sentence that no pattern fits is shown as it came. Knows nothing of when they are said.
"""

from __future__ import annotations

import re
from functools import lru_cache

from app import i18n
from app.i18n import QT_TRANSLATE_NOOP, translate

# Each as in the engine's sources, with a name in braces for every value; a value may be one of these sentences itself.
SENTENCES = (
    # Why so many drafts (draft_length.py)
    QT_TRANSLATE_NOOP("Engine", "Not drafting: plain decoding is faster for this text on this machine."),
    QT_TRANSLATE_NOOP("Engine", "A plain pass, to see how fast that is now."),
    QT_TRANSLATE_NOOP("Engine", "Nothing verified: the drafter is too unsure here."),
    QT_TRANSLATE_NOOP("Engine", "{drafts}: all that were proposed."),
    QT_TRANSLATE_NOOP("Engine", "{drafts}: {more} would cost more than it brings."),
    QT_TRANSLATE_NOOP("Engine", "{drafts}, as set."),
    QT_TRANSLATE_NOOP("Engine", "1 draft"),
    QT_TRANSLATE_NOOP("Engine", "{count} drafts"),
    QT_TRANSLATE_NOOP("Engine", "a {number}st"),
    QT_TRANSLATE_NOOP("Engine", "a {number}nd"),
    QT_TRANSLATE_NOOP("Engine", "a {number}rd"),
    QT_TRANSLATE_NOOP("Engine", "a {number}th"),
    QT_TRANSLATE_NOOP("Engine", "an {number}th"),
    # The context (history.py, generate.py)
    QT_TRANSLATE_NOOP("Engine", "The context is nearly full: {used} of {size} tokens are used."),
    QT_TRANSLATE_NOOP(
        "Engine", "The conversation outgrew the context of {size} tokens: the model no longer sees {what}."
    ),
    QT_TRANSLATE_NOOP("Engine", "the oldest question and its answer"),
    QT_TRANSLATE_NOOP("Engine", "the {turns} oldest questions and answers"),
    QT_TRANSLATE_NOOP(
        "Engine", "The prompt has {tokens} tokens and the context holds {size}; shorten it or choose a longer context."
    ),
    QT_TRANSLATE_NOOP(
        "Engine",
        "The conversation has outgrown the context of {size} tokens; start a new chat, choose a longer context, or let "
        "the oldest questions and answers be left out.",
    ),
    QT_TRANSLATE_NOOP(
        "Engine", "The answer fills the context of {size} tokens; choose a longer context to go on with it."
    ),
    # Which modes there are (catalog.py, drafter_config.py)
    QT_TRANSLATE_NOOP(
        "Engine", "No {mode} drafter for {target} was found; put its .gguf into {folder} or give it with --drafter."
    ),
    QT_TRANSLATE_NOOP("Engine", "{file} is a {kind} drafter and was given for the mode {mode}; give it for {other}."),
    QT_TRANSLATE_NOOP("Engine", "{one} does not fit {other}: {differences}; use a drafter made for this target."),
    QT_TRANSLATE_NOOP(
        "Engine",
        "{file} is of architecture '{architecture}', whose layers this program's llama.cpp does not hand out to a "
        "drafter; use the baseline mode, or a target of another architecture.",
    ),
    QT_TRANSLATE_NOOP(
        "Engine",
        "The drafter {file} computes values that are not numbers, so nothing is drafted; its file may be damaged: "
        "download it again.",
    ),
    # How the process ended (crash.py, host.py)
    QT_TRANSLATE_NOOP("Engine", "The engine closed its connection and did not end; it was ended."),
    QT_TRANSLATE_NOOP("Engine", "The engine process ended without being asked to."),
    QT_TRANSLATE_NOOP("Engine", "The engine process ended with exit status {number}{said}"),
    QT_TRANSLATE_NOOP(
        "Engine",
        "The engine process was killed by the system (SIGKILL), possibly because the machine ran out of memory; a "
        "smaller model or a shorter context needs less.",
    ),
    QT_TRANSLATE_NOOP("Engine", "The engine process was ended from outside ({signal})."),
    QT_TRANSLATE_NOOP("Engine", "The engine process crashed ({signal}){said}"),
    QT_TRANSLATE_NOOP("Engine", "The engine process could not be started ({reason})."),
    QT_TRANSLATE_NOOP("Engine", "The engine met an error it does not know ({kind}: {error}); please report it."),
    QT_TRANSLATE_NOOP("Engine", "Stopped before it was finished."),
    QT_TRANSLATE_NOOP("Engine", "No model is loaded; load one first."),
    # Loading (target.py, gguf_file.py, embedded.py)
    QT_TRANSLATE_NOOP(
        "Engine", "The model {file} could not be loaded ({reason}); download it again, or choose another model."
    ),
    QT_TRANSLATE_NOOP(
        "Engine", "There is not enough free memory for a context of {size} tokens; choose a shorter one."
    ),
    QT_TRANSLATE_NOOP(
        "Engine",
        "The model {file} cannot keep its keys and values as {type} ({reason}); choose f16.",
    ),
    QT_TRANSLATE_NOOP(
        "Engine",
        "There is not enough free memory for the drafter; choose a shorter context or close other programs.",
    ),
    QT_TRANSLATE_NOOP("Engine", "There is no device {name} here; choose one of: {names}."),
    QT_TRANSLATE_NOOP("Engine", "{file} does not exist; check the path or download the model."),
    QT_TRANSLATE_NOOP("Engine", "{file} is a folder, not a model file; choose a .gguf file in it."),
    QT_TRANSLATE_NOOP("Engine", "{file} may not be read by this user; change its permissions."),
    QT_TRANSLATE_NOOP("Engine", "{file} cannot be read ({reason}); check the disk or the path."),
    QT_TRANSLATE_NOOP("Engine", "The embedded model is not installed; get it with: {command}"),
    # Asking (session.py, vocabulary.py)
    QT_TRANSLATE_NOOP("Engine", "The prompt is empty; type a question first."),
    QT_TRANSLATE_NOOP("Engine", "The prompt is not valid text (UTF-8); remove the characters that show as �."),
    QT_TRANSLATE_NOOP("Engine", "There is no answer to go on with; ask a question first."),
    QT_TRANSLATE_NOOP("Engine", "There is no drafter for the mode {mode}."),
    QT_TRANSLATE_NOOP(
        "Engine",
        "The chat template of {file} does not accept this conversation ({error}); start a new chat, without a system "
        "prompt if there is one.",
    ),
    # Fit (fit.py)
    QT_TRANSLATE_NOOP("Engine", "Takes about {needed} of the {free} that are free."),
    QT_TRANSLATE_NOOP(
        "Engine", "Takes about {needed}, nearly all of the {free} that are free; close other programs first."
    ),
    QT_TRANSLATE_NOOP("Engine", "Takes about {needed}, but only {free} are free; {advice}."),
    QT_TRANSLATE_NOOP("Engine", "a context of {tokens} tokens would fit"),
    QT_TRANSLATE_NOOP("Engine", "the model in {type} (about {size}) would fit"),
    # The Hub (hub_connection.py, transfer.py)
    QT_TRANSLATE_NOOP("Engine", "You are offline: {host} cannot be reached; what is on disk works."),
    QT_TRANSLATE_NOOP("Engine", "{host} has stopped answering; try again later."),
    QT_TRANSLATE_NOOP("Engine", "The connection to {host} broke; try again."),
    QT_TRANSLATE_NOOP(
        "Engine",
        "The certificate of {host} cannot be verified; check the clock, or set SSL_CERT_FILE to your proxy's "
        "certificate.",
    ),
    QT_TRANSLATE_NOOP(
        "Engine",
        "{name} is gated: sign in at {page}, accept its conditions there, and give the program your token.",
    ),
    QT_TRANSLATE_NOOP("Engine", "The Hub does not accept your token; give a new one."),
    QT_TRANSLATE_NOOP(
        "Engine",
        "The disk is full ({folder}): make room and go on, or set HF_HOME to another folder. What has been fetched of "
        "{file} is kept.",
    ),
    # What a comparison came to (bench/verdict.py)
    QT_TRANSLATE_NOOP(
        "Engine",
        "Other programs took up to {share} of the processors meanwhile: read the speeds as ratios, and measure again "
        "on a quiet machine before relying on them.",
    ),
    QT_TRANSLATE_NOOP("Engine", "Temperature {temperature}, {once}: against the baseline's tokens/s, {parts}."),
    QT_TRANSLATE_NOOP("Engine", "one question at a time"),
    QT_TRANSLATE_NOOP("Engine", "{count} questions at once"),
    QT_TRANSLATE_NOOP("Engine", "Against {first}'s, {second} {times}."),
    QT_TRANSLATE_NOOP("Engine", "The order {first}, {second}, baseline {held} in every run."),
    QT_TRANSLATE_NOOP("Engine", "held"),
    QT_TRANSLATE_NOOP("Engine", "did not hold"),
    QT_TRANSLATE_NOOP("Engine", "{value} × ({judged})"),
    QT_TRANSLATE_NOOP("Engine", "one run"),
    QT_TRANSLATE_NOOP("Engine", "{low}–{high} in {count} runs"),
    QT_TRANSLATE_NOOP("Engine", "{over}, on too busy a machine to judge"),
    QT_TRANSLATE_NOOP("Engine", "{over}, faster"),
    QT_TRANSLATE_NOOP("Engine", "{over}, slower"),
    QT_TRANSLATE_NOOP("Engine", "{over}, no clear difference"),
    QT_TRANSLATE_NOOP("Engine", "At temperature {temperature} hardly anything was drafted, or accepted, with {parts}."),
    QT_TRANSLATE_NOOP("Engine", "{name} ({number} tokens per target pass)"),
    QT_TRANSLATE_NOOP("Engine", "The price: {prices}."),
    QT_TRANSLATE_NOOP("Engine", "{name} {seconds} s of start-up, {memory} MiB of memory and {disk} MB on disk"),
    QT_TRANSLATE_NOOP("Engine", "All {count} greedy answers are the baseline's, token for token."),
    QT_TRANSLATE_NOOP(
        "Engine",
        "{count} of {number} greedy answers are the baseline's, token for token; the others part from it: {kinds}.",
    ),
    QT_TRANSLATE_NOOP("Engine", "{mode} was not measured. {reason}"),
    QT_TRANSLATE_NOOP("Engine", "{name} could not be measured: {error}"),
    # and its table (bench/glance.py)
    QT_TRANSLATE_NOOP("Engine", "Temperature {temperature}"),
    QT_TRANSLATE_NOOP("Engine", "tokens/s, one at a time"),
    QT_TRANSLATE_NOOP("Engine", "tokens/s in all, {count} at once"),
    QT_TRANSLATE_NOOP("Engine", "tokens/s of each, {count} at once"),
    QT_TRANSLATE_NOOP("Engine", "time to first token, ms"),
    QT_TRANSLATE_NOOP("Engine", "acceptance length"),
    QT_TRANSLATE_NOOP("Engine", "tokens per target pass"),
    QT_TRANSLATE_NOOP("Engine", "drafts accepted, %"),
    QT_TRANSLATE_NOOP("Engine", "verification passes"),
    QT_TRANSLATE_NOOP("Engine", "draft step, ms"),
    QT_TRANSLATE_NOOP("Engine", "verification pass, ms"),
    QT_TRANSLATE_NOOP("Engine", "ready after, s"),
    QT_TRANSLATE_NOOP("Engine", "peak memory, MiB"),
    QT_TRANSLATE_NOOP("Engine", "drafter on disk, MB"),
    QT_TRANSLATE_NOOP("Engine", "right answers"),
)
_VALUE = re.compile(r"\{(\w+)\}")
_NUMBERS = {"count", "number", "size", "temperature", "tokens", "turns", "used"}
_LISTS = {"parts": " and ", "prices": "; ", "kinds": ", "}  # values that are several, and what stands between them
_SAID_BY_OTHERS = {"error", "reason", "said"}  # may be several sentences; other values are within one
_BETWEEN = re.compile(r"(?<=\.) (?=[A-Z])")  # two sentences


def in_words(sentence: str) -> str:
    """A sentence of the engine in the language of the window."""
    if i18n.language() == i18n.SOURCE or not sentence:
        return sentence
    for source, pattern in _patterns():
        if found := pattern.fullmatch(sentence):
            values = {name: _value_in_words(name, value) for name, value in found.groupdict(default="").items()}
            return translate("Engine", source).format(**values)
    parts = _BETWEEN.split(sentence)
    return sentence if len(parts) == 1 else " ".join(map(in_words, parts))


def _value_in_words(name: str, value: str) -> str:
    return ", ".join(map(in_words, value.split(_LISTS[name]))) if name in _LISTS else in_words(value)


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """The patterns with the most words of their own come first: they say more than those with few."""
    made = []
    for source in sorted(SENTENCES, key=lambda source: -len(_VALUE.sub("", source))):
        parts = _VALUE.split(source)  # words and names in turn
        words = [_value(part) if number % 2 else re.escape(part) for number, part in enumerate(parts)]
        made.append((source, re.compile("".join(words), re.DOTALL)))
    return tuple(made)


def _value(name: str) -> str:
    if name in _NUMBERS:
        return rf"(?P<{name}>[\d,.]+)"
    return f"(?P<{name}>.*?)" if name in _SAID_BY_OTHERS else rf"(?P<{name}>(?:(?!\. [A-Z]).)*?)"
