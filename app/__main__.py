"""`python -m app`: opens the window.

Imports Qt only inside `main`: the engine process imports this module again, and has no use for it.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from engine.errors import DFlashChatError
from engine.events import Mode


def main(arguments: Sequence[str] | None = None) -> int:
    multiprocessing.freeze_support()
    parser = argparse.ArgumentParser(prog="dflash-chat", description="Open the chat window.")
    parser.add_argument(
        "--model", metavar="FILE", help="the target's GGUF file (default: the one chosen in the settings)"
    )
    parser.add_argument(
        "--drafter", metavar="FILE", action="append", default=[], help="a drafter's GGUF file; may be repeated"
    )
    parser.add_argument("--context", metavar="TOKENS", type=int, help="context length (default: that of the settings)")
    given = parser.parse_args(arguments)
    try:
        settings = given_for_the_run(given.model, drafters_by_mode(given.drafter), given.context)
    except DFlashChatError as error:
        print(error, file=sys.stderr)
        return 1
    return open_window(settings)


def given_for_the_run(target: str | None, drafters: Mapping[Mode, str], context: int | None) -> dict[str, Any]:
    """The options as settings that hold for this run; what was not given is left to the user's settings."""
    given = {"target": target, "drafters": dict(drafters) or None, "context": context}
    return {name: value for name, value in given.items() if value is not None}


def open_window(given: Mapping[str, Any]) -> int:
    """Show the window until it is closed; returns the exit status. `given`: settings of this run alone."""
    from PySide6.QtWidgets import QApplication

    from app import clipboard, theme
    from app.engine_thread import EngineThread
    from app.library import data_folder
    from app.preferences import take_look
    from app.settings import SettingsStore, settings_file
    from app.window import ChatWindow

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl+C in the terminal; the engine process ends when its pipe closes
    application = QApplication(sys.argv[:1])
    theme.prepare(application)
    store = SettingsStore(settings_file(), given)
    take_look(store.settings)
    engine = EngineThread()
    window = ChatWindow(engine, store, data_folder())
    window.show()
    gc.collect()
    gc.freeze()  # what lives as long as the program need not be looked through again and again
    try:
        return application.exec()
    finally:
        window.chats.close()  # where the program was quit without closing the window
        engine.close()
        clipboard.hand_over()


def drafters_by_mode(drafters: Sequence[str]) -> dict[Mode, str]:
    from engine.catalog import drafter_mode

    return {drafter_mode(path): path for path in drafters}


if __name__ == "__main__":
    sys.exit(main())
