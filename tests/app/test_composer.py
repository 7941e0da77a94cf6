"""The context meter under the input box."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.composer import Composer
from app.state import ChatState, Phase


def test_the_meter_is_of_the_context_served_and_warns_before_it_is_full(qtbot: QtBot) -> None:
    composer = Composer()
    qtbot.addWidget(composer)
    composer.show()
    composer.show_state(ChatState(engine=Phase.READY))
    assert not composer.meter.isVisible()  # nothing is loaded: nothing is claimed
    composer.show_state(ChatState(engine=Phase.READY, context_used=1800, context_size=2048))
    assert composer.context.text() == "1,800 of 2,048 tokens" and composer.context.property("role") == "muted"
    composer.show_state(ChatState(engine=Phase.READY, context_used=1900, context_size=2048))
    assert composer.context.text() == "1,900 of 2,048 tokens, nearly full"
    assert composer.context.property("role") == "warning"
    assert composer.meter.accessibleDescription() == composer.context.text()
    assert composer.meter.share == 1900 / 2048


def test_the_rule_for_a_full_context_is_said(qtbot: QtBot) -> None:
    composer = Composer()
    qtbot.addWidget(composer)
    assert "oldest questions and answers are left out" in composer.meter.toolTip()
    composer.show_rule("stop")
    assert "the answer ends there" in composer.meter.toolTip()
    assert composer.context.toolTip() == composer.meter.toolTip()
