"""`python -m app`: opens the window.

Imports Qt only inside `main`: the engine process imports this module again, and has no use for it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import signal
import sys
from collections.abc import Sequence

from engine.errors import DFlashChatError
from engine.events import LoadSettings, Mode


def main(arguments: Sequence[str] | None = None) -> int:
    multiprocessing.freeze_support()
    parser = argparse.ArgumentParser(prog="dflash-chat", description="Open the chat window.")
    parser.add_argument(
        "--model", metavar="FILE", help="the target's GGUF file (default: the model that comes with the program)"
    )
    parser.add_argument(
        "--drafter", metavar="FILE", action="append", default=[], help="a drafter's GGUF file; may be repeated"
    )
    parser.add_argument("--context", metavar="TOKENS", type=int, default=LoadSettings().context, help="context length")
    given = parser.parse_args(arguments)
    try:
        settings = LoadSettings(target=given.model, drafters=drafters_by_mode(given.drafter), context=given.context)
    except DFlashChatError as error:
        print(error, file=sys.stderr)
        return 1
    return open_window(settings)


def open_window(settings: LoadSettings) -> int:
    """Show the window until it is closed; returns the exit status."""
    from PySide6.QtWidgets import QApplication

    from app import clipboard, theme
    from app.engine_thread import EngineThread
    from app.window import ChatWindow

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl+C in the terminal; the engine process ends when its pipe closes
    application = QApplication(sys.argv[:1])
    theme.prepare(application)
    engine = EngineThread()
    window = ChatWindow(engine, settings)
    window.show()
    try:
        return application.exec()
    finally:
        engine.close()  # where the program was quit without closing the window
        clipboard.hand_over()


def drafters_by_mode(drafters: Sequence[str]) -> dict[Mode, str]:
    from engine.catalog import drafter_mode

    return {drafter_mode(path): path for path in drafters}


if __name__ == "__main__":
    sys.exit(main())
