"""The project's error types.

Each carries one sentence that tells a person what is wrong and what to do about it; the command line and the window
show that sentence as it is, the log has the rest. Knows nothing of where the error came from.
"""

from __future__ import annotations


class DFlashChatError(Exception):
    """Base of every error meant to be shown: `str(error)` is one sentence with the remedy."""


class GgmlMismatch(DFlashChatError):
    """The ggml inside llama-cpp-python is not the one this program was written for."""


class ModelFileError(DFlashChatError):
    """A model file is missing, unreadable, damaged, or not what it was given as."""


class DrafterMismatch(DFlashChatError):
    """A drafter does not fit its target; the sentence names both files and the field that differs."""


class TemplateError(DFlashChatError):
    """The target's chat template is missing or cannot be rendered."""


class PromptError(DFlashChatError):
    """A prompt that cannot be answered as it is: empty, or not valid text."""


class SettingsError(DFlashChatError):
    """A sampler setting is outside its range; the sentence names it and the range."""


class ContextTooSmall(DFlashChatError):
    """The context cannot hold the prompt, or is too short to be of use."""


class CacheFolderError(DFlashChatError):
    """The user's cache folder cannot be written."""


class OutOfMemory(DFlashChatError):
    """A buffer could not be allocated."""


class HubError(DFlashChatError):
    """The Hub did not give what was asked for: not reachable, unknown, gated, refused, busy, …

    `kind` says which, `link` is a page where a person can do something about it, `wait_s` how long the Hub asks one to
    wait.
    """

    def __init__(
        self, sentence: str, kind: str = "answer", link: str | None = None, wait_s: float | None = None
    ) -> None:
        super().__init__(sentence)
        self.kind = kind
        self.link = link
        self.wait_s = wait_s


class DownloadError(DFlashChatError):
    """A download ended without the file: no room, no permission, damaged on the way, changed on the Hub.

    What was fetched stays and is gone on with, unless the sentence says otherwise.
    """


class EngineStopped(DFlashChatError):
    """The engine process ended; the sentence says why, as far as that is known."""


class Cancelled(Exception):
    """The user's stop reached a step that was still running (not an error to show)."""
