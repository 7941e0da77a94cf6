"""`python -m tests.benchmark_window`: how long the window's event loop stands still while conversations are shown.

A timer ticks every 5 ms in the event loop. A stall is the time between two ticks beyond these 5 ms: by the clock, and
as processor time of the window's own thread, which does not count what other programs took. `--seconds` shortens the
streaming, which takes as long as its tokens do.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEventLoop, Qt, QTimer
from PySide6.QtWidgets import QApplication

from app import theme
from app.conversation import Conversation, TokenMark, Turn
from app.conversation_view import ConversationView
from engine.events import Mode

TICK_MS = 5
FRAME_MS = 33
LENGTH = 20_000  # characters of the streamed answer
RATE = 200  # tokens/s
PER_TOKEN = 4  # characters
LIMIT_MS = 50

SECTION = r"""## Section {n}: 제목과 *emphasis*

A paragraph with **bold words**, `code`, a [link](https://example.org/{n}), $x_{n}^2 + \frac{{1}}{{2}}$ and 한국어 문장.
It goes on for a while so that there is something to wrap at the end of the line, as answers do.

- an item
  - a nested item with a formula \( e^{{i\pi}} + {n} = 0 \)
- another item

| name | value | 값 |
|:-----|------:|:--:|
| alpha | {n} | 가나다 |
| beta | 2.50 | **굵게** |
| gamma | $\gamma_{n}$ | `code` |

```python
def section_{n}(values: list[float]) -> float:
    '''Returns the sum, 합계.'''
    total = 0.0
    for value in values:  # one after the other
        total += value * {n}
    return total / max(1, len(values))
```

$$\int_0^{{{n}}} f(x)\,dx = \sum_{{k=1}}^n a_k$$

> A quote of two lines
> with words.

"""


class Heartbeat:
    """Ticks in the event loop and remembers the longest pauses."""

    def __init__(self) -> None:
        self._timer = QTimer()
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)
        self._timer.start(TICK_MS)
        self.reset()

    def reset(self) -> None:
        self.clock: list[float] = []
        self.busy: list[float] = []
        self._at, self._busy_at = time.perf_counter(), time.thread_time()
        self._begin, self._busy_begin = self._at, self._busy_at

    def _tick(self) -> None:
        at, busy = time.perf_counter(), time.thread_time()
        self.clock.append(max(0.0, (at - self._at) * 1e3 - TICK_MS))
        self.busy.append((busy - self._busy_at) * 1e3)
        self._at, self._busy_at = at, busy

    def report(self, name: str) -> None:
        self._tick()
        over = sum(one > LIMIT_MS for one in self.busy)
        share = (self._busy_at - self._busy_begin) / (self._at - self._begin)
        print(
            f"{name:<44} longest stall {max(self.clock):6.1f} ms, of its own {max(self.busy):6.1f} ms;"
            f" own over {LIMIT_MS} ms: {over} of {len(self.busy)}; {share:.0%} of a core",
            flush=True,
        )
        self.reset()

    def stop(self) -> None:
        self._timer.stop()


def wait(milliseconds: int, until: Callable[[], bool] = lambda: False) -> None:
    loop = QEventLoop()
    end = time.perf_counter() + milliseconds / 1e3
    check = QTimer()
    check.timeout.connect(lambda: loop.quit() if until() or time.perf_counter() > end else None)
    check.start(20)
    loop.exec()
    check.stop()


def answer_of(length: int) -> str:
    text = ""
    while len(text) < length:
        text += SECTION.format(n=text.count("## ") + 1)
    return text[:length]


def conversation_of(turns: list[tuple[str, str]]) -> Conversation:
    conversation = Conversation()
    parent = conversation.root
    for question, answer in turns:
        turn = Turn(question, Mode.DFLASH2, answer, ended=True, complete=True, parent=parent)
        parent.children.append(turn)
        parent = turn
    return conversation


def stream(view: ConversationView, beat: Heartbeat, seconds: float, origins: bool) -> None:
    text = answer_of(LENGTH)
    conversation = conversation_of([("A first question", "A first answer")])
    conversation.ask("Write a long answer with code, tables and formulas.", Mode.DFLASH2)
    view.show_origins(origins)
    view.show_conversation(conversation, idle=False)
    wait(300)
    beat.reset()
    begin, sent = time.perf_counter(), 0

    def frame() -> None:
        nonlocal sent
        due = min(len(text), int((time.perf_counter() - begin) * RATE) * PER_TOKEN)
        pieces = [text[at : min(at + PER_TOKEN, due)] for at in range(sent, due, PER_TOKEN)]
        marks = [
            TokenMark((sent // PER_TOKEN + number) % 6, len(piece.encode()), ((piece, 0.8), ("other", 0.1)))
            for number, piece in enumerate(pieces)
        ]
        conversation.add_text(text[sent:due], marks)
        sent = due
        view.show_conversation(conversation, idle=False)

    timer = QTimer()
    timer.timeout.connect(frame)
    timer.start(FRAME_MS)
    wait(round(seconds * 1e3), lambda: sent >= len(text))
    timer.stop()
    beat.report(f"streaming {sent:,} characters{', token view' if origins else ''}")
    view.show_origins(False)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmark_window", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="end each streaming after this time")
    given = parser.parse_args()
    application = QApplication(sys.argv[:1])
    theme.prepare(application)
    view = ConversationView()
    view.resize(1000, 800)
    view.show()
    beat = Heartbeat()
    view.show_conversation(conversation_of([("warm", answer_of(3000))]), idle=True)
    wait(8000, lambda: not view._typesetter.busy)
    stream(view, beat, given.seconds, origins=False)
    stream(view, beat, given.seconds, origins=True)

    many = conversation_of([(f"Question {n}", f"Answer {n}. " + "More words. " * (n % 50)) for n in range(5000)])
    beat.reset()
    view.show_conversation(many, idle=True)
    wait(500)
    beat.report("opening 10,000 messages")
    bar = view.verticalScrollBar()
    for step in range(40):
        bar.setValue(bar.value() - (400 if step % 4 else bar.maximum() // 20))
        wait(25)
    beat.report("scrolling through them")

    big = conversation_of([("A megabyte", answer_of(1_000_000))])
    view.show_conversation(Conversation(), idle=True)
    wait(200)
    beat.reset()
    view.show_conversation(big, idle=True)
    wait(20_000, lambda: not view.views[0].answer.reading)
    wait(300)
    beat.report("opening a message of 1 MB")
    for step in range(20):
        bar.setValue(bar.value() - (500 if step % 4 else bar.maximum() // 10))
        wait(25)
    beat.report("scrolling through it")
    for dark in (True, False):
        theme.apply(application, dark)
        wait(300)
    beat.report("changing the theme, 1 MB shown")
    for width in (600, 1200, 1000):
        view.resize(width, 800)
        wait(300)
    beat.report("changing the width, 1 MB shown")
    beat.stop()
    view.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
