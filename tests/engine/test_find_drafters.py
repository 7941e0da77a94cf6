"""Drafters that come or go while a target is loaded: the mode switch follows without loading the target again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine import catalog
from engine.events import Answered, LoadSettings, Mode
from tests import tiny_chat

if TYPE_CHECKING:
    from engine.session import Session


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where drafters are looked for, empty at first."""
    place = tmp_path / "drafters"
    place.mkdir()
    monkeypatch.setattr(catalog, "drafter_places", lambda: (place,))
    return place


def answered(session: Session, mode: Mode) -> Answered:
    *_, last = session.ask("count", mode=mode, max_tokens=6, draft_length=3)
    assert isinstance(last, Answered)
    return last


def test_a_drafter_comes_and_goes(folder: Path, tmp_path: Path) -> None:
    from engine.session import Session

    target = tiny_chat.counting_target(tmp_path / "counting.gguf")
    with Session.open(LoadSettings(target=str(target), context=256, threads=1)) as session:
        plain = answered(session, Mode.BASELINE).token_ids
        assert session.modes[2].reason is not None
        drafter = tiny_chat.counting_drafter(folder / "counting-v2.gguf")
        modes = session.find_drafters({})
        assert [info.reason for info in modes][::2] == [None, None] and modes[2].drafter == str(drafter)
        session.rewind(0)
        with_drafts = answered(session, Mode.DFLASH2)
        assert with_drafts.token_ids == plain and with_drafts.statistics.accepted_tokens > 0
        assert session.memory().drafter_weights
        drafter.unlink()
        assert session.find_drafters({})[2].reason is not None
        assert not session.memory().drafter_weights, "what is gone is unloaded"
        session.rewind(0)
        assert answered(session, Mode.BASELINE).token_ids == plain
        given = tiny_chat.counting_drafter(tmp_path / "given.gguf")
        assert session.find_drafters({Mode.DFLASH2: str(given)})[2].drafter == str(given)
