"""The window's language: every string shown goes through `translate`, so that Qt Linguist's files can replace it.

`use_language` installs a language; the texts that widgets already show stay as they are until they are set again.
`python -m app.translations` keeps the files up to date. Knows nothing of widgets.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

FOLDER = Path(__file__).resolve().parent.parent / "assets" / "translations"
SOURCE = "en"  # the language the strings in the sources are written in
LANGUAGES = {"en": "English", "ko": "한국어"}  # each by its own name, so that its speakers find it

_installed: list[QTranslator] = []
_current = SOURCE


def translate(context: str, text: str) -> str:
    """`text` in the language of the window; both are literals, or the strings could not be collected.

    A table that is made before a language is chosen holds `QT_TRANSLATE_NOOP("Context", "text")`, and is translated
    where it is shown.
    """
    return QCoreApplication.translate(context, text)


def QT_TRANSLATE_NOOP(context: str, text: str) -> str:
    """`text` as it is. The name is the one by which the collecting program knows such a mark."""
    return text


def language() -> str:
    """The language in use, such as "ko"."""
    return _current


def system_language() -> str:
    """The first language of the system that the program speaks."""
    for wanted in QLocale.system().uiLanguages():
        code = wanted.split("-")[0]
        if code in LANGUAGES:
            return code
    return SOURCE


def use_language(name: str) -> bool:
    """Speak a language of `LANGUAGES`, or the system's ("system"); whether it is another one than before."""
    global _current
    wanted = system_language() if name == "system" else name if name in LANGUAGES else SOURCE
    if wanted == _current:
        return False
    for translator in _installed:
        QCoreApplication.removeTranslator(translator)
    _installed.clear()
    if wanted != SOURCE:
        _install(f"qtbase_{wanted}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath))
        _install(f"dflash_{wanted}", str(FOLDER))
    _current = wanted
    return True


def _install(name: str, folder: str) -> None:
    """Where there is no such file, the texts stay in the language of the sources."""
    translator = QTranslator(QCoreApplication.instance())
    if translator.load(name, folder):
        QCoreApplication.installTranslator(translator)
        _installed.append(translator)
