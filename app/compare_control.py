"""What the user asks to be compared becomes a comparison in a thread of its own, and its news change the state.

Outlives the page, which may be made again. Knows nothing of widgets.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import platformdirs
from PySide6.QtCore import QObject, QTimer, Signal

from app.compare_state import Comparison, Phase
from app.compare_thread import CompareThread, Order
from engine.bench.plan import Conditions
from engine.bench.prepare import QUICK_PER_KIND, Wanted, usual
from engine.bench.process import SESSION
from engine.bench.progress import RunEvent
from engine.bench.results import Results
from engine.bench.suite import Question, suite
from engine.events import LoadSettings

FRAME_MS = 50  # between two changes that are shown


def reports_folder() -> Path:
    return Path(platformdirs.user_data_dir("dflash-chat", appauthor=False)) / "comparisons"


class CompareControl(QObject):
    changed = Signal()  # the state; at most twenty times a second

    def __init__(
        self,
        settings: Callable[[], tuple[LoadSettings, int | None]],
        session_factory: str = SESSION,
        folder: Path | None = None,
        parent: QObject | None = None,
    ) -> None:
        """`settings`: what the chat's model is loaded with now, and the draft length (None: automatic)."""
        super().__init__(parent)
        self.state = Comparison()
        self._settings = settings
        self._session_factory = session_factory
        self._folder = folder
        self._thread: CompareThread | None = None
        self._frame = QTimer(self)
        self._frame.setSingleShot(True)
        self._frame.timeout.connect(self.changed)

    def ask(self, text: str, max_tokens: int) -> None:
        """The user's own question, once in each mode."""
        question = Question("own", "own", text)
        load, _ = self._settings()
        conditions = replace(
            self._loaded_as(Conditions("", max_tokens, 1, suite="own question"), load), context=load.context
        )
        command = shlex.join(["dflash-chat", "run", text, "--mode", "MODE", "--max-tokens", str(max_tokens)])
        self._begin((question,), conditions, command, None)

    def run_suite(self, quick: bool) -> None:
        """The suite, as `dflash-chat bench` runs it."""
        load, _ = self._settings()
        conditions = self._loaded_as(usual(quick), load)
        words = ["dflash-chat", "bench", *(["--quick"] if quick else [])]
        words += ["--model", Path(load.target).name] if load.target else []
        words += [word for path in load.drafters.values() for word in ("--drafter", Path(path).name)]
        folder = (self._folder or reports_folder()) / time.strftime("%Y-%m-%d %H.%M.%S")
        questions = tuple(suite(per_kind=QUICK_PER_KIND if quick else None))
        self._begin(questions, conditions, shlex.join(words), folder)

    def stop(self) -> None:
        if self._thread is not None and self.state.phase is Phase.RUNNING:
            self.state.stop()
            self._thread.cancel()
            self.changed.emit()

    def close(self) -> None:
        """Returns when the thread and its engine have ended."""
        self._frame.stop()
        if self._thread is not None:
            self._thread.told.disconnect(self._told)
            self._thread.ended.disconnect(self._ended)
            self._thread.cancel()
            self._thread.wait()
            self._thread = None

    @staticmethod
    def _loaded_as(conditions: Conditions, load: LoadSettings) -> Conditions:
        """As the chat's model is loaded."""
        return replace(
            conditions,
            threads=load.threads,
            gpu_layers=load.gpu_layers,
            device=load.device,
            kv_type=load.kv_type,
        )

    # --- the thread

    def _begin(
        self, questions: tuple[Question, ...], conditions: Conditions, command: str, folder: Path | None
    ) -> None:
        if self._thread is not None:
            return
        load, draft_length = self._settings()
        wanted = Wanted(questions, load.target, dict(load.drafters), draft_length=draft_length)
        if folder is None:
            wanted = replace(wanted, sweeps=())
        self.state.begin(whole_suite=folder is not None)
        self._thread = CompareThread(Order(wanted, conditions, command, folder), self._session_factory, self)
        self._thread.told.connect(self._told)
        self._thread.ended.connect(self._ended)
        self._thread.start()
        self.changed.emit()

    def _told(self, event: RunEvent) -> None:
        self.state.apply(event)
        if not self._frame.isActive():
            self._frame.start(FRAME_MS)

    def _ended(self, results: Results | None, report: Path | None, trouble: str) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.wait()
            thread.deleteLater()
        self._frame.stop()
        self.state.finish(results, report, trouble)
        self.changed.emit()
