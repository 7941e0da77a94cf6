"""The thread in which a comparison is carried out: it starts engine processes of its own and tells what they do.

The same code as `dflash-chat bench`. Knows nothing of widgets.
"""

from __future__ import annotations

import threading
import traceback
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, QThread, Signal

from app.i18n import translate
from engine.bench.plan import Conditions
from engine.bench.prepare import Wanted, begun, make_plan, new_results
from engine.bench.process import SESSION
from engine.bench.report import write_report
from engine.bench.runner import Runner
from engine.errors import DFlashChatError


@dataclass(frozen=True)
class Order:
    """`folder` None: nothing is written. `command`: how to ask for the same in a terminal."""

    wanted: Wanted
    conditions: Conditions
    command: str
    folder: Path | None = None


class CompareThread(QThread):
    """One comparison. Signals arrive in the thread that made it."""

    told = Signal(object)  # an event of engine.bench.progress
    ended = Signal(object, object, str)  # Results or None, the report's page or None, a sentence where it went wrong

    def __init__(self, order: Order, session_factory: str = SESSION, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("compare")
        self._order = order
        self._session_factory = session_factory
        self._cancel = threading.Event()

    def cancel(self) -> None:
        """What was measured until now is kept; `ended` comes soon."""
        self._cancel.set()

    def run(self) -> None:
        order = self._order
        results, page, trouble = None, None, ""
        try:
            plan = make_plan(order.wanted, order.conditions)
            if order.folder is None:
                results = new_results(plan, order.command)
            else:
                results = begun(plan, order.command, order.folder)
            Runner(results, order.folder, self.told.emit, self._cancel, self._session_factory).run()
            if order.folder is not None:
                page = write_report(results, order.folder)[0]
        except (DFlashChatError, OSError) as error:
            trouble = str(error)
        except Exception as error:  # whatever it is, the page must not wait for ever
            traceback.print_exc()
            sentence = translate(
                "Compare", "The comparison met an error that is not known ({reason}); please report it."
            )
            trouble = sentence.format(reason=f"{type(error).__name__}: {error}")
        self.ended.emit(results, page, trouble)
