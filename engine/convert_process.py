"""Converts a drafter in a process of its own, for programs that must outlive it.

The quantiser is native code: what it does to its process, or how much of it is loaded there, is no concern of the
window's. Knows nothing of what a conversion is.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from engine.convert import Converted, convert
from engine.errors import DFlashChatError, ModelFileError

_LOOK_AGAIN_S = 0.1


def convert_apart(
    folder: Path, target: str, out: Path, type: str | None, on_progress: Callable[[float], None]
) -> Converted:
    """As `convert`, with the same errors. `on_progress` is called several times a second, and may raise to stop."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, folder, target, out, type), name="conversion", daemon=True)
    try:
        process.start()
    except OSError as error:
        ours.close()
        raise ModelFileError(f"The conversion could not be started ({error.strerror or error}); try again.") from error
    finally:
        theirs.close()
    try:
        done = 0.0
        while True:
            on_progress(done)
            if not ours.poll(_LOOK_AGAIN_S):
                continue
            try:
                message = ours.recv()
            except EOFError:
                process.join()
                raise ModelFileError(
                    f"The conversion of {folder.name} broke off (its process ended with {process.exitcode}); try again."
                ) from None
            if isinstance(message, DFlashChatError):
                raise message
            if isinstance(message, Converted):
                return message
            done = message
    finally:
        if process.is_alive():
            process.kill()
        process.join()
        ours.close()
        for part in out.parent.glob(f"{out.name}.*.part"):  # of a process that was ended
            part.unlink(missing_ok=True)


def _work(connection: Connection, folder: Path, target: str, out: Path, type: str | None) -> None:
    told = -1.0

    def tell(fraction: float) -> None:
        nonlocal told
        if fraction - told >= 0.005 or fraction == 1:
            told = fraction
            connection.send(fraction)

    try:
        connection.send(convert(folder, target, out, type=type, on_progress=tell))
    except DFlashChatError as error:
        connection.send(error)
    except (BrokenPipeError, KeyboardInterrupt):  # whoever asked has gone
        pass
