"""One click: the drafter that the loaded target lacks is found, checked, downloaded and turned on.

A state machine over `ModelWork`; the window shows its `Quest` as one bar and carries out the last step, since only the
window speaks with the engine. Knows nothing of widgets.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from app.i18n import translate
from app.model_work import ModelWork
from app.shelf import Quest
from app.tasks import Task
from engine.catalog import METHOD_NAMES, header_of
from engine.errors import DFlashChatError
from engine.events import Mode, ModeInfo

if TYPE_CHECKING:
    from engine.downloads import Download
    from engine.finding import Look, Offer
    from engine.hub import Hub


class DrafterQuest(QObject):
    changed = Signal()
    ready = Signal(object)  # Mode: its drafter is on the disk, whole and checked

    def __init__(self, work: ModelWork, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._work = work
        self._task: Task | None = None
        self.quest: Quest | None = None
        work.downloads_changed.connect(self._follow_download)

    # --- what the user does

    def price(self, mode: Mode, target: str) -> None:
        """Find a drafter, so that the offer can say what it costs. Nothing is downloaded but headers."""
        quest = self.quest
        if quest is not None and quest.target == target:
            if quest.mode is mode and quest.stage != "failed" and quest.stage != "none":
                return
            if quest.wanted and quest.is_running:
                return  # one at a time; the strip shows it
        self._find(Quest(mode, target))

    def get(self, mode: Mode, target: str) -> None:
        """The click."""
        quest = self.quest
        if quest is not None and quest.wanted and quest.is_running:
            return
        if quest is None or quest.mode is not mode or quest.target != target or quest.stage in ("none", "failed", "on"):
            self._find(Quest(mode, target, wanted=True))
            return
        quest.wanted = True
        if quest.stage == "offered":
            self._fetch(quest)
        self.changed.emit()

    def again(self) -> None:
        """After a failure: go on where it stopped."""
        quest = self.quest
        if quest is None or quest.stage != "failed":
            return
        if quest.download is not None:
            quest.stage, quest.sentence, quest.link = "downloading", "", None
            self._work.resume(quest.download)
            self.changed.emit()
        else:
            self._find(replace(quest, stage="finding", sentence="", link=None, wanted=True))

    def cancel(self) -> None:
        """Stop it, or put away what it said at its end."""
        quest, self.quest = self.quest, None
        self._stop_finding()
        if quest is not None and quest.download is not None and quest.stage in ("downloading", "failed"):
            self._work.drop(quest.download)
        self.changed.emit()

    # --- what the window says

    def modes_found(self, modes: tuple[ModeInfo, ...]) -> Mode | None:
        """Drafters were looked for again: the mode to switch to, when this ends a quest."""
        quest = self.quest
        if quest is None or quest.stage != "switching":
            return None
        reason = next((info.reason for info in modes if info.mode is quest.mode), None)
        if reason is not None:
            self._fail(quest, reason)
            return None
        words = translate("Quest", "{mode} is on: the next answer uses it.")
        quest.stage, quest.sentence = "on", words.format(mode=METHOD_NAMES[quest.mode])
        self.changed.emit()
        return quest.mode

    def finish_without_switch(self) -> None:
        """The drafter is there, and its target is not the one that is loaded."""
        if self.quest is not None:
            self.quest.stage = "on"
            self.quest.sentence = translate("Quest", "The drafter is here. It is used when its model is loaded.")
            self.changed.emit()

    def target_changed(self, target: str | None) -> None:
        """Another target is loaded: its drafter is another one. A download that runs goes on in the list."""
        if self.quest is not None and self.quest.target != target:
            self._stop_finding()
            self.quest = None
            self.changed.emit()

    # --- the steps

    def _find(self, quest: Quest) -> None:
        self._stop_finding()
        self.quest = quest

        def work(task: Task, hub: Hub) -> Any:
            from engine.finding import best_drafter

            return best_drafter(hub, header_of(quest.target), quest.mode, task.tell, task.cancel_event)

        def progress(look: Look) -> None:
            quest.sentence = look.sentence
            if look.problem:
                quest.passed_over = look.sentence
            self.changed.emit()

        self._task = self._work.with_hub(
            work, lambda offer: self._found(quest, offer), lambda error: self._fail(quest, str(error), error), progress
        )
        self.changed.emit()

    def _found(self, quest: Quest, offer: Offer | None) -> None:
        self._task = None
        if offer is None:
            words = translate("Quest", "The Hub has no {mode} drafter that fits this model.")
            none = words.format(mode=METHOD_NAMES[quest.mode])
            quest.stage, quest.sentence = "none", quest.passed_over or none
        else:
            quest.stage, quest.offer, quest.sentence = "offered", offer, offer.verdict.sentence
            quest.size = 0 if offer.path is not None else offer.model.size
            if quest.wanted:
                self._fetch(quest)
        self.changed.emit()

    def _fetch(self, quest: Quest) -> None:
        offer: Any = quest.offer
        quest.stage, quest.fraction, quest.download = "downloading", 0.0, offer.model.key
        quest.sentence = ""
        self._work.download(offer.model, first=True)

    def _follow_download(self) -> None:
        quest = self.quest
        if quest is None or quest.download is None or quest.stage not in ("downloading", "failed"):
            return
        download = self._work.downloads.get(quest.download)
        if download is not None:
            self._take(quest, download)
            self.changed.emit()

    def _take(self, quest: Quest, download: Download) -> None:
        from engine.downloads import State

        quest.fraction = download.fraction
        if download.state is State.DONE:
            quest.stage, quest.fraction, quest.sentence = "switching", 1.0, ""
            self.ready.emit(quest.mode)
        elif download.state is State.FAILED:
            self._fail(quest, download.sentence or "")
            quest.link = download.link
        elif quest.stage == "failed" and download.state.active:
            quest.stage, quest.sentence, quest.link = "downloading", "", None

    def _fail(self, quest: Quest, sentence: str, error: DFlashChatError | None = None) -> None:
        self._task = None
        quest.stage, quest.sentence, quest.link = "failed", sentence, getattr(error, "link", None)
        self.changed.emit()

    def _stop_finding(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
