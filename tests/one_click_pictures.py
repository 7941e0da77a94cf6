"""`python -m tests.one_click_pictures FOLDER`: one click from no drafter to DFlash 2, and the models page, as pictures.

The window is the real one, with a tiny model, against the tests' own Hub server; nothing of the user's is touched.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

PATIENCE_MS = 120_000
VARIABLES = ("HF_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
DRAFTER, TARGET = "tests/counting-DFlash2-GGUF", "tests/counting-GGUF"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.one_click_pictures", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        for name in VARIABLES:
            os.environ[name] = str(Path(home) / name.lower())
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
        play(Path(home), folder)


def play(home: Path, folder: Path) -> None:
    """Each step is waited for, and kept in both themes."""
    from tests import tiny_chat
    from tests.drafter_files import write_drafter
    from tests.hub_server import HubServer

    target = tiny_chat.counting_target(home / "counting.gguf")
    drafter = tiny_chat.counting_drafter(home / "counting-dflash2.gguf")
    other = write_drafter(home / "other.gguf", version=2, hidden_size=128)
    with HubServer() as hub:
        os.environ["HF_ENDPOINT"] = hub.url
        hub.add(DRAFTER, {"counting-DFlash2-F32.gguf": drafter}, downloads=1200, gguf={"architecture": "dflash"})
        facts = {"architecture": "llama", "total": 549_000}
        hub.add(TARGET, {"counting-F32.gguf": target}, downloads=22200, gguf=facts)
        hub.add("tests/other-DFlash2-GGUF", {"other-F32.gguf": other}, gguf={"architecture": "dflash"})

        from PySide6.QtCore import QElapsedTimer, QEventLoop
        from PySide6.QtWidgets import QApplication

        from app import theme
        from app.engine_thread import EngineThread
        from app.settings import SettingsStore, given_by
        from app.state import Phase
        from app.window import ChatWindow
        from engine.events import LoadSettings, Mode

        application = QApplication([])
        theme.prepare(application)
        settings = given_by(LoadSettings(target=str(target), context=256, threads=1)) | {"draft_length": 3}
        window = ChatWindow(EngineThread(), SettingsStore(given=settings))
        window.show()
        desk, work = window.desk, window.desk.work

        def until(condition: Callable[[], object]) -> None:
            clock = QElapsedTimer()
            clock.start()
            while not condition():
                application.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 50)
                if clock.hasExpired(PATIENCE_MS):
                    raise TimeoutError(f"nothing came of it: {desk.quest.quest}")

        def keep(name: str) -> None:
            for dark in (True, False):
                theme.apply(application, dark)
                for _ in range(20):  # a new size passes through the layouts in turns
                    application.processEvents()
                window.grab().save(str(folder / f"{name}-{'dark' if dark else 'light'}.png"))

        def stage() -> str:
            return desk.quest.quest.stage if desk.quest.quest else ""

        try:
            until(lambda: window.state.phase is Phase.READY)
            keep("1-no-drafter")
            window.modes.choose(Mode.DFLASH2)
            until(lambda: stage() == "offered")
            window.modes.reason.grab().save(str(folder / "2-offer.png"))
            hub.trouble.pauses = [600_000]
            window.modes.reason.button.click()
            until(hub.paused.is_set)
            keep("3-downloading")
            hub.go_on.set()
            until(lambda: stage() == "on" and window.state.mode is Mode.DFLASH2)
            keep("4-on")
            window.ask("Count!")
            until(lambda: window.state.phase is Phase.READY and window.state.conversation.turns[-1].ended)
            keep("5-answer")
            window.models_button.click()
            until(lambda: not work.looking)
            keep("6-models")
            desk.page.show_tab(1)
            desk.page.hub.field.setText("DFlash2")
            desk.page.hub.search_button.click()
            until(lambda: work.found.repositories and not work.found.running)
            keep("7-search")
            desk.page.hub.repositories["tests/other-DFlash2-GGUF"].click()
            until(lambda: any(checked.verdict for checked in work.checked.values()))
            keep("8-does-not-fit")
        finally:
            window.close()


if __name__ == "__main__":
    main()
