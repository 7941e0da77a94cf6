"""The window's side of the process that colours code and sets formulas: asks, waits without blocking, keeps formulas.

The process starts when there is something to do, and ends with `stop`. A request that kills it, or that takes too long,
counts as failed. Knows nothing of documents.
"""

from __future__ import annotations

import json
import os
import sys
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakMethod

from PySide6.QtCore import QByteArray, QObject, QProcess, QProcessEnvironment, QTimer, Signal
from shiboken6 import isValid

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_MS = 60_000  # of a machine whose cores all answer questions
KEPT = 1000  # formulas

Runs = list[tuple[int, int]]


@dataclass(frozen=True)
class Formula:
    """Lengths are of type of size `typesetting.EM`."""

    svg: QByteArray
    width: float
    ascent: float
    descent: float


class Typesetter(QObject):
    formula_set = Signal(str, bool)  # the formula of this LaTeX, made to stand alone or not, is known now

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._formulas: OrderedDict[tuple[str, bool], Formula | None] = OrderedDict()
        self._asked: set[tuple[str, bool]] = set()
        self._waiting: OrderedDict[int, tuple[dict[str, Any], Any]] = OrderedDict()
        self._number = 0
        self._process: QProcess | None = None
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.setInterval(PATIENCE_MS)
        self._patience.timeout.connect(self._lost)

    @property
    def busy(self) -> bool:
        return bool(self._waiting)

    def knows(self, latex: str, display: bool) -> bool:
        """Whether the formula is known, be it as one that cannot be read; if not, `formula_set` will say so."""
        key = (latex, display)
        if key in self._formulas:
            return True
        if key not in self._asked:
            self._asked.add(key)
            self._ask({"formula": latex, "display": display}, key)
        return False

    def formula(self, latex: str, display: bool) -> Formula | None:
        """None: not known yet, or it cannot be read."""
        return self._formulas.get((latex, display))

    def color(self, code: str, language: str, receiver: Callable[[Runs | None], None]) -> None:
        """`receiver`, a method, is given the runs of one style, or None where the language is not known."""
        self._ask({"code": code, "language": language}, WeakMethod(receiver))

    def resume(self) -> None:
        """Go on with what was asked for."""
        if self._waiting and self._process is None:
            self._start()

    def stop(self) -> None:
        """End the process. What was asked for waits for `resume`, or for the next request."""
        self._patience.stop()
        if self._process is not None:
            process, self._process = self._process, None
            process.finished.disconnect(self._lost)
            process.kill()
            process.waitForFinished(2000)
            process.deleteLater()

    # --- the process

    def _ask(self, request: dict[str, Any], meaning: Any) -> None:
        self._number += 1
        request["id"] = self._number
        self._waiting[self._number] = (request, meaning)
        if self._process is None:
            self._start()
        else:
            self._send(request)
        if not self._patience.isActive():
            self._patience.start()

    def _start(self) -> None:
        self._process = QProcess(self)
        environment = QProcessEnvironment.systemEnvironment()
        paths = [str(ROOT), environment.value("PYTHONPATH")]
        environment.insert("PYTHONPATH", os.pathsep.join(path for path in paths if path))
        self._process.setProcessEnvironment(environment)
        self._process.setProcessChannelMode(QProcess.ProcessChannelMode.ForwardedErrorChannel)
        self._process.readyReadStandardOutput.connect(self._read)
        self._process.finished.connect(self._lost)
        self._process.start(sys.executable, ["-m", "app.typesetting"])
        for request, _ in self._waiting.values():
            self._send(request)
        self._patience.start()

    def _send(self, request: dict[str, Any]) -> None:
        assert self._process is not None
        self._process.write(QByteArray(json.dumps(request).encode() + b"\n"))

    def _read(self) -> None:
        if self._process is None or not self._process.canReadLine():
            return
        reply = json.loads(bytes(self._process.readLine().data()))
        if reply["id"] in self._waiting:
            _, meaning = self._waiting.pop(reply["id"])
            self._deliver(meaning, reply)
        if self._waiting:
            self._patience.start()
        else:
            self._patience.stop()
        if self._process is not None and self._process.canReadLine():
            QTimer.singleShot(0, self, self._read)  # one a turn of the event loop

    def _deliver(self, meaning: Any, reply: dict[str, Any]) -> None:
        if isinstance(meaning, WeakMethod):
            receiver = meaning()
            if receiver is not None and isValid(receiver.__self__):
                receiver(reply.get("runs"))
            return
        found = reply.get("formula")
        self._asked.discard(meaning)
        self._formulas[meaning] = (
            Formula(QByteArray(found["svg"].encode()), found["width"], found["ascent"], found["descent"])
            if found
            else None
        )
        if len(self._formulas) > KEPT:
            self._formulas.popitem(last=False)
        self.formula_set.emit(*meaning)

    def _lost(self) -> None:
        """The process ended, or does not answer: the first request is to blame, the others are asked again."""
        self.stop()
        if self._waiting:
            _, (_, meaning) = self._waiting.popitem(last=False)
            self.resume()
            self._deliver(meaning, {})
