"""The strip under the window's header while a drafter is being got: one bar, one sentence, and how to stop it.

Shows a `Quest`. Knows nothing of how it is done.
"""

from __future__ import annotations

from PySide6.QtCore import QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app.definitions import mode_name
from app.engine_words import in_words
from app.i18n import translate
from app.model_parts import STEPS, bar, button, label, row, set_role
from app.model_words import size_words
from app.shelf import Quest
from app.theme import px


class DrafterStrip(QFrame):
    cancel = Signal()  # or put away
    again = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("strip")
        self.sentence = label("", 13)
        self.bar = bar(translate("Quest", "Progress of the drafter's download"))
        self.page_button = button(translate("Quest", "Open its page"), "quiet")
        self.again_button = button(translate("Quest", "Go on"), "quiet")
        self.cancel_button = button(translate("Quest", "Cancel"), "quiet")
        self._link: str | None = None
        self.page_button.clicked.connect(lambda: QDesktopServices.openUrl(QUrl(self._link or "")))
        self.again_button.clicked.connect(self.again)
        self.cancel_button.clicked.connect(self.cancel)
        column = QVBoxLayout(self)
        column.setContentsMargins(px(22), px(8), px(22), px(8))
        column.setSpacing(px(6))
        line = row(self.sentence, self.page_button, self.again_button, self.cancel_button, spacing=16)
        line.setStretch(0, 1)
        column.addLayout(line)
        column.addWidget(self.bar)
        self.show_quest(None)

    def show_quest(self, quest: Quest | None) -> None:
        """Only what the user asked for is shown; what is merely priced is not."""
        self.setVisible(quest is not None and quest.wanted)
        if quest is None or not quest.wanted:
            return
        self.sentence.setText(_words(quest))
        failed = quest.stage in ("failed", "none")
        set_role(self, "failed" if failed else "")
        set_role(self.sentence, "danger" if failed else "")
        self.bar.setVisible(quest.is_running)
        self.bar.setValue(round(STEPS * (quest.fraction or 0.0)))
        self._link = quest.link
        self.page_button.setVisible(quest.link is not None)
        self.again_button.setVisible(quest.stage == "failed")
        self.cancel_button.setText(translate("Quest", "Cancel") if quest.is_running else translate("Quest", "Close"))
        self.cancel_button.setAccessibleName(self.cancel_button.text())


def _words(quest: Quest) -> str:
    mode = mode_name(quest.mode)
    if quest.stage == "finding":
        words = translate("Quest", "Finding the {mode} drafter. {step}")
        return words.format(mode=mode, step=in_words(quest.sentence)).strip()
    if quest.stage == "downloading":
        if quest.fraction is not None and quest.size:
            words = translate("Quest", "Getting the {mode} drafter: {done} of {total}")
            done = size_words(round(quest.fraction * quest.size))
            return words.format(mode=mode, done=done, total=size_words(quest.size))
        return translate("Quest", "Getting the {mode} drafter").format(mode=mode)
    if quest.stage == "switching":
        return translate("Quest", "Turning {mode} on").format(mode=mode)
    return in_words(quest.sentence)
