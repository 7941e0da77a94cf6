"""The user's token for a Hub: looked up, kept and forgotten. It is never logged, and never part of a sentence.

Looked up in this order: HF_TOKEN, the system's keyring, the file where `hf auth login` leaves it. A token given to this
program goes into the keyring; where there is none (on a server without a desktop, say), into that same file, which only
its owner can read. The keyring is opened only when a note says that this program put a token there: asking may bring up
a dialog, which nobody wants to see who has no token.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import platformdirs

from engine.errors import SettingsError

_SERVICE = "dflash-chat"
LONGEST = 4096


def clean_token(text: str) -> str:
    """A token as typed or pasted, without the blanks around it. Raises SettingsError for what cannot be one."""
    token = text.strip()
    if not token:
        raise SettingsError("The token is empty; paste the one from your page of tokens, which begins with hf_.")
    if (
        len(token) > LONGEST
        or not token.isascii()
        or any(not letter.isprintable() or letter == " " for letter in token)
    ):
        raise SettingsError(
            "The token has characters that no token has, such as a line break; copy it again, alone and in one piece."
        )
    return token


class TokenStore:
    """For one endpoint: a token of one Hub is not shown to another."""

    def __init__(self, endpoint: str, note: Path | None = None) -> None:
        self._endpoint = endpoint
        self._note = note or Path(platformdirs.user_data_dir("dflash-chat", appauthor=False)) / "keyring"

    def token(self) -> str | None:
        """The token to send, or None. Never raises: without a token, what is public still works."""
        return _sane(os.environ.get("HF_TOKEN")) or self._from_keyring() or _from_file()

    @property
    def place(self) -> str | None:
        """Where the token comes from, for people: "HF_TOKEN", "the system's keyring", a path; None without one."""
        if _sane(os.environ.get("HF_TOKEN")):
            return "HF_TOKEN"
        if self._from_keyring():
            return "the system's keyring"
        return str(_token_file()) if _from_file() else None

    def keep(self, text: str) -> str:
        """Keep a token; says where, as `place` does. Raises SettingsError."""
        token = clean_token(text)
        keyring = _keyring()
        if keyring is not None:
            try:
                keyring.set_password(_SERVICE, self._endpoint, token)
                if keyring.get_password(_SERVICE, self._endpoint) == token:  # there are keyrings that keep nothing
                    self._write_note()
                    return "the system's keyring"
            except (keyring.errors.KeyringError, OSError):
                pass  # locked, or the user said no
        path = _token_file()
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = path.with_name(f"{path.name}.{os.getpid()}.tmp")
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(token)
            os.replace(fresh, path)
        except OSError as error:
            raise SettingsError(
                f"The token cannot be kept in {path} ({error.strerror or error}); set HF_TOKEN instead."
            ) from error
        return str(path)

    def forget(self) -> None:
        """Take the token out of the keyring and the file. HF_TOKEN is the user's. Raises SettingsError."""
        keyring = _keyring()
        if keyring is not None and self._noted():
            try:
                keyring.delete_password(_SERVICE, self._endpoint)
            except keyring.errors.PasswordDeleteError:
                pass  # gone already
            except (keyring.errors.KeyringError, OSError) as error:
                raise SettingsError(
                    "The system's keyring does not let the token be removed; remove it there."
                ) from error
        try:
            self._note.unlink(missing_ok=True)
            _token_file().unlink(missing_ok=True)
        except OSError as error:
            raise SettingsError(f"The token cannot be removed ({error.strerror or error}).") from error

    def _from_keyring(self) -> str | None:
        keyring = _keyring() if self._noted() else None
        if keyring is None:
            return None
        try:
            return _sane(keyring.get_password(_SERVICE, self._endpoint))
        except (keyring.errors.KeyringError, OSError):
            return None

    def _noted(self) -> bool:
        try:
            return self._endpoint in self._note.read_text("utf-8").splitlines()
        except (OSError, ValueError):
            return False

    def _write_note(self) -> None:
        if not self._noted():
            self._note.parent.mkdir(parents=True, exist_ok=True)
            with self._note.open("a", encoding="utf-8") as file:
                file.write(f"{self._endpoint}\n")


def _sane(text: str | None) -> str | None:
    """A token that can be sent; what is none is as good as absent."""
    try:
        return clean_token(text) if text else None
    except SettingsError:
        return None


def _keyring() -> Any:
    """The module, when there is a keyring behind it."""
    try:
        import keyring
        import keyring.backends.fail
        import keyring.errors
    except ImportError:
        return None
    try:
        return None if isinstance(keyring.get_keyring(), keyring.backends.fail.Keyring) else keyring
    except Exception:  # a backend that does not even start
        return None


def _token_file() -> Path:
    home = os.environ.get("HF_HOME")
    given = os.environ.get("HF_TOKEN_PATH") or (os.path.join(home, "token") if home else None)
    if given:
        return Path(given).expanduser()
    from huggingface_hub import constants

    return Path(constants.HF_TOKEN_PATH)


def _from_file() -> str | None:
    try:
        return _sane(_token_file().read_text("utf-8"))
    except (OSError, ValueError):
        return None
