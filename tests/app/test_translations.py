"""Every text a user sees can be translated, and is."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QTranslator
from PySide6.QtWidgets import QApplication, QDialogButtonBox
from pytestqt.qtbot import QtBot

from app import i18n
from app.i18n import LANGUAGES, translate
from app.settings import SYSTEM_PROMPTS
from app.translations import (
    APP,
    Message,
    linguist_files,
    messages,
    messages_in,
    missing,
    sources,
    translated,
)

# Programs for the terminal, whose words are their own.
FOR_TERMINALS = {"__main__.py", "screens.py", "translations.py", "typesetting.py"}
SHOWN = {
    "setText", "setToolTip", "setAccessibleName", "setAccessibleDescription", "setWindowTitle", "setPlaceholderText",
    "setStatusTip", "setWhatsThis", "setSpecialValueText", "setTitle", "addItem", "addAction", "addMenu", "addTab",
    "addRow", "QLabel", "QPushButton", "QToolButton", "QAction", "QCheckBox", "QRadioButton", "QGroupBox", "QMenu",
}  # fmt: skip
SAME_IN_EVERY_LANGUAGE = {"DFlash Chat", "DFlash", "DFlash 2", *SYSTEM_PROMPTS.values()}
TRANSLATES = {"translate", "QT_TRANSLATE_NOOP"}
NOT_SHOWN = {"setObjectName", "Failed"}  # the engine's sentences are translated where they arrive


@pytest.fixture
def korean(qapp: QApplication) -> Iterator[None]:
    i18n.use_language("ko")
    yield
    i18n.use_language("en")


def test_there_is_a_file_for_every_language_but_that_of_the_sources() -> None:
    assert [file.name for file in linguist_files()] == [f"dflash_{name}.ts" for name in LANGUAGES if name != "en"]


@pytest.mark.parametrize("file", linguist_files(), ids=lambda file: file.name)
def test_every_text_is_translated(file: Path) -> None:
    lacking = [f"{message.context}: {message.text}" for message in missing(file)]
    assert lacking == [], "python -m app.translations takes them into the file"
    left_over = set(translated(file)) - messages()
    assert left_over == set(), "python -m app.translations takes them out of the file"


@pytest.mark.parametrize("file", linguist_files(), ids=lambda file: file.name)
def test_a_translation_has_the_same_places_for_values(file: Path) -> None:
    def places(text: str) -> list[str]:
        return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name is not None)

    wrong = [message.text for message, text in translated(file).items() if places(message.text) != places(text)]
    assert wrong == []


def test_qt_finds_every_translation(qapp: QApplication) -> None:
    """In the compiled file, which `python -m app.translations` makes."""
    for file in linguist_files():
        translator = QTranslator()
        assert translator.load(str(file.with_suffix(".qm")))
        for message, text in translated(file).items():
            assert translator.translate(message.context, message.text) == text


def test_the_language_is_changed_and_changed_back(korean: None, qtbot: QtBot) -> None:
    assert i18n.language() == "ko" and translate("Settings", "Settings") == "설정"
    box = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)  # Qt's own words, too
    qtbot.addWidget(box)
    assert box.button(QDialogButtonBox.StandardButton.Cancel).text() == "취소"
    assert i18n.use_language("en") and translate("Settings", "Settings") == "Settings"
    assert not i18n.use_language("en")
    i18n.use_language("system")
    assert i18n.language() in LANGUAGES


def test_texts_are_collected_from_the_sources() -> None:
    source = 'translate("A", "one " "two")\nx = {1: QT_TRANSLATE_NOOP("B", "three")}\ntranslate("A", self.text)'
    assert set(messages_in(source)) == {Message("A", "one two"), Message("B", "three")}
    with pytest.raises(ValueError, match="no literal"):
        list(messages_in("translate(a + b, 'text')"))


def test_no_text_is_shown_without_being_translated() -> None:
    found = [
        f"{path.relative_to(APP)}:{line}: {text}"
        for path in sources()
        if path.name not in FOR_TERMINALS
        for line, text in untranslated(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_the_search_for_untranslated_texts_finds_them() -> None:
    bad = (
        'label.setText("Ready")',
        'QLabel("three words here")',
        'f(tip="This is a sentence.")',
        'b.setText(f"{n} left")',
    )
    good = (
        'label.setText("…")',
        'label.setText(translate("A", "Ready"))',
        'raise ValueError("Nobody sees this.")',
        'label.setText(f"{a}: {b}")',
        '"""A docstring of a module."""',
        'run("SELECT a FROM b")',
    )
    for source in bad:
        assert len(list(untranslated(source))) == 1, source
    for source in good:
        assert list(untranslated(source)) == [], source


def untranslated(source: str) -> Iterator[tuple[int, str]]:
    """Strings that a user would see in the language of the source: those given to widgets, and whole sentences."""
    tree = ast.parse(source)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text, outer = node.value, parents.get(node)
            if isinstance(outer, (ast.Expr, ast.FormattedValue)) or text in SAME_IN_EVERY_LANGUAGE:
                continue
            if _is_hidden(node, parents):
                continue
            if _is_sentence(text) or (_is_shown(node, parents) and re.search("[A-Za-z]{2}", text)):
                yield node.lineno, text


def _is_sentence(text: str) -> bool:
    return re.match(r"[A-Z][a-z’']+,? [a-z]", text) is not None or re.match(r"[A-Z][a-z]+ .*[.…]$", text) is not None


def _is_shown(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Given to a widget's method, directly or inside an f-string or a conditional."""
    outer = parents.get(node)
    while isinstance(outer, (ast.JoinedStr, ast.IfExp, ast.BinOp, ast.BoolOp)):
        node, outer = outer, parents.get(outer)
    return isinstance(outer, ast.Call) and node in outer.args and _name(outer.func) in SHOWN


def _is_hidden(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """In an exception of Python's own, a type's name, or already translated."""
    while (outer := parents.get(node)) is not None:
        if isinstance(outer, (ast.Raise, ast.Assert)) and not isinstance(node, ast.stmt):
            return True
        if isinstance(outer, ast.AnnAssign) and node is outer.annotation:
            return True
        if isinstance(outer, ast.Call) and _name(outer.func) in TRANSLATES | NOT_SHOWN:
            return True
        if isinstance(outer, ast.stmt):
            return False
        node = outer
    return False


def _name(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
