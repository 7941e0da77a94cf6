"""The target's tokens as text: tokenizer, incremental detokenizer and chat template, through llama-cpp-python.

Text a user typed is never read as special tokens, and an answer keeps the ids it was generated with: rendered again, a
history would tokenise differently. Knows nothing of contexts and decoding.
"""

from __future__ import annotations

import codecs
import ctypes
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jinja2
from llama_cpp import llama_cpp as libllama
from llama_cpp.llama_chat_format import Jinja2ChatFormatter

from engine.errors import PromptError, TemplateError

_MARK = "\ue0c7{}\ue0c8"  # private use characters, which no template touches
_MARKED = re.compile("\ue0c7(\\d+)\ue0c8")


@dataclass(frozen=True)
class Message:
    """One message of a conversation. `ids`: the tokens an answer was generated with, without the stop token."""

    role: str  # "system", "user" or "assistant"
    text: str
    ids: tuple[int, ...] | None = None


class Vocabulary:
    """Tokenizer and template of one loaded model."""

    def __init__(self, model: Any, template: str | None, file: str) -> None:
        self._vocab = libllama.llama_model_get_vocab(model)
        self._file = file
        self._pieces: dict[int, bytes] = {}
        self._buffer = ctypes.create_string_buffer(512)
        self.size: int = libllama.llama_vocab_n_tokens(self._vocab)
        self._template_error = ""
        self._formatter: Jinja2ChatFormatter | None = None
        if template is None:
            self._template_error = "it carries none"
            return
        try:
            self._formatter = Jinja2ChatFormatter(
                template=template,
                eos_token=self._text_of(libllama.llama_vocab_eos(self._vocab)),
                bos_token=self._text_of(libllama.llama_vocab_bos(self._vocab)),
            )
        except jinja2.TemplateError as error:
            self._template_error = f"it cannot be read: {_in_one_line(error)}"

    def _text_of(self, token: int) -> str:
        if token < 0:
            return ""
        text = libllama.llama_vocab_get_text(self._vocab, token)
        return str(text.decode("utf-8", "replace")) if text else ""

    # tokens

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """`special`: texts of special tokens become those tokens. Raises PromptError for text that is not UTF-8."""
        try:
            data = text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise PromptError("The prompt is not valid text (UTF-8); remove the characters that show as �.") from error
        room = len(data) + 16
        tokens = (ctypes.c_int32 * room)()
        count = libllama.llama_tokenize(self._vocab, data, len(data), tokens, room, False, special)
        if count < 0:
            tokens = (ctypes.c_int32 * -count)()
            count = libllama.llama_tokenize(self._vocab, data, len(data), tokens, -count, False, special)
        return list(tokens[:count])

    def piece(self, token: int) -> bytes:
        """The bytes a token stands for, not always whole characters; special tokens stand for none."""
        piece = self._pieces.get(token)
        if piece is None:
            length = libllama.llama_token_to_piece(self._vocab, token, self._buffer, len(self._buffer), 0, False)
            if length < 0:
                self._buffer = ctypes.create_string_buffer(-length)
                length = libllama.llama_token_to_piece(self._vocab, token, self._buffer, -length, 0, False)
            piece = self._pieces[token] = self._buffer.raw[:length]
        return piece

    def label(self, token: int) -> str:
        """How to show one token alone: its text, the name of a special one; half a character as U+FFFD."""
        return self.piece(token).decode("utf-8", "replace") or self._text_of(token)

    def spells(self, tokens: Sequence[int], text: str) -> bool:
        """Whether an answer of these tokens has this text."""
        return all(0 <= token < self.size for token in tokens) and self.detokenizer().push(tokens) == text

    def is_stop(self, token: int) -> bool:
        """Whether the file's metadata marks the token as an end of generation (eos, eot, eom, …: all of them)."""
        return bool(libllama.llama_vocab_is_eog(self._vocab, token))

    def detokenizer(self) -> Detokenizer:
        return Detokenizer(self)

    # conversations

    def render(self, messages: Sequence[Message], begun: str = "") -> list[int]:
        """Token ids of the conversation, ready for the next answer, or behind what there is of its text.

        The template sees marks in place of the messages, so nothing in a message can be taken for a part of it. Raises
        TemplateError when there is no template, or it fails or leaves a message out; PromptError for invalid text.
        """
        rendered = self._render(messages)
        parts = _MARKED.split(rendered)  # template text, number of a message, template text, …
        missing = set(range(len(messages))) - set(map(int, parts[1::2]))
        if missing:
            raise TemplateError(
                f"The chat template of {self._file} leaves out the {messages[min(missing)].role} message; "
                "start a new chat, without a system prompt if there is one."
            )
        ids = [libllama.llama_vocab_bos(self._vocab)] if self._adds_bos(rendered) else []
        stretch: list[tuple[str, bool]] = []  # between generated answers: (text, may hold special tokens)
        for place, part in enumerate(parts):
            if place % 2 == 0:
                stretch.append((part, True))
                continue
            message = messages[int(part)]
            if message.ids is None:
                stretch.append((message.text, False))
            else:
                ids += self._tokenize_stretch(stretch)
                ids += message.ids
                stretch = []
        if begun:
            stretch.append((begun, False))
        return ids + self._tokenize_stretch(stretch)

    def _render(self, messages: Sequence[Message]) -> str:
        if self._formatter is None:
            raise TemplateError(
                f"The chat template of {self._file} cannot be used ({self._template_error}); "
                "use a model made for chat, or one whose file carries its template."
            )
        marked = [{"role": m.role, "content": _MARK.format(index)} for index, m in enumerate(messages)]
        try:
            return str(self._formatter(messages=marked).prompt)  # type: ignore[arg-type]
        except Exception as error:  # a template is a program, and can fail in any way
            raise TemplateError(
                f"The chat template of {self._file} does not accept this conversation ({_in_one_line(error)}); "
                "start a new chat, without a system prompt if there is one."
            ) from error

    def _tokenize_stretch(self, pieces: Sequence[tuple[str, bool]]) -> list[int]:
        """In one go, as the whole would be, unless someone typed the text of a special token: then piece by piece."""
        if all(special or not self._spells_special(text) for text, special in pieces):
            return self.tokenize("".join(text for text, _ in pieces), special=True)
        return [token for text, special in pieces for token in self.tokenize(text, special=special)]

    def _spells_special(self, text: str) -> bool:
        return self.tokenize(text, special=True) != self.tokenize(text)

    def _adds_bos(self, rendered: str) -> bool:
        """Whether the file wants a first token that the template did not write itself."""
        bos = self._text_of(libllama.llama_vocab_bos(self._vocab))
        return bool(libllama.llama_vocab_get_add_bos(self._vocab)) and not (bos and rendered.startswith(bos))


class Detokenizer:
    """Turns tokens into text as they come, never half a character: one that an answer ends inside of is left out."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, tokens: Sequence[int]) -> str:
        return self._decoder.decode(b"".join(map(self._vocabulary.piece, tokens)))


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
