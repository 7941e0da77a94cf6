"""Colours, type, sizes and the style sheet, light and dark, and the fonts that come with the program.

Everything that has a colour asks `theme()`, everything that has a size `px()`. `choose` takes the user's wishes. Knows
nothing of what the widgets are for.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontInfo, QGuiApplication, QIcon, QPalette
from PySide6.QtWidgets import QApplication, QStyle

ASSETS = Path(__file__).resolve().parent.parent / "assets"
FONT_FILES = ("Pretendard-Regular.otf", "Pretendard-SemiBold.otf")
FAMILY = "Pretendard"  # Latin and Hangul alike: a fresh machine has no Hangul font


@dataclass(frozen=True)
class Theme:
    dark: bool
    window: str
    surface: str  # cards, the input box
    panel: str
    bubble: str  # the user's own words
    hover: str
    chosen: str  # the chosen one of several
    line: str
    text: str
    muted: str  # text of less weight, still readable
    faint: str  # what cannot be used
    accent: str
    accent_soft: str
    on_accent: str
    danger: str
    danger_soft: str
    warning: str
    warning_soft: str
    series: tuple[str, str, str, str, str]  # parts of the memory bar

    def color(self, name: str) -> QColor:
        return QColor(getattr(self, name))


LIGHT = Theme(
    dark=False,
    window="#FBFBFA",
    surface="#FFFFFF",
    panel="#F4F4F1",
    bubble="#ECEDEA",
    hover="#E6E7E3",
    chosen="#FFFFFF",
    line="#E1E1DC",
    text="#1E2023",
    muted="#61646B",
    faint="#A9ABB0",
    accent="#2F5FD0",
    accent_soft="#E7EDFB",
    on_accent="#FFFFFF",
    danger="#B02A20",
    danger_soft="#FBEAE7",
    warning="#8A5A00",
    warning_soft="#FAF0DA",
    series=("#2F5FD0", "#86A6EE", "#13806E", "#6CC2B1", "#C3C5C2"),
)
DARK = Theme(
    dark=True,
    window="#17181B",
    surface="#212327",
    panel="#1C1D21",
    bubble="#2B2D33",
    hover="#2F3238",
    chosen="#484C55",
    line="#32353B",
    text="#ECEDEF",
    muted="#A2A6AE",
    faint="#62666E",
    accent="#8CABFF",
    accent_soft="#28324C",
    on_accent="#10141D",
    danger="#FF9084",
    danger_soft="#3B2422",
    warning="#EFC06A",
    warning_soft="#372E1C",
    series=("#7E9FF5", "#4A62A0", "#4FC0A9", "#2D7265", "#54575E"),
)

_current = LIGHT


def theme() -> Theme:
    return _current


@dataclass(frozen=True)
class Look:
    """What the user wishes. Sizes in pixels at 100 %; the text's size takes everything else along."""

    scheme: str = "system"  # or "light", "dark"
    family: str | None = None  # None = the font that comes with the program
    text_size: int = 14
    code_size: int = 13
    reduced_motion: bool = False


_look = Look()


def prepare(application: QApplication) -> None:
    """Fonts, icon and the theme the system wants; follows it from then on."""
    for name in FONT_FILES:
        if QFontDatabase.addApplicationFont(str(ASSETS / "fonts" / name)) < 0:
            raise FileNotFoundError(f"the font {ASSETS / 'fonts' / name} is missing or damaged")
    application.setStyle("Fusion")
    application.setApplicationName("dflash-chat")
    application.setApplicationDisplayName("DFlash Chat")
    application.setDesktopFileName("dflash-chat")
    application.setWindowIcon(QIcon(str(ASSETS / "icon.svg")))
    system_pixels = QFontInfo(QGuiApplication.font()).pixelSize()
    _set_scale(system_pixels / 13)
    application.styleHints().colorSchemeChanged.connect(lambda: apply(application, _wants_dark(application)))
    apply(application, _wants_dark(application))


def choose(application: QApplication, look: Look) -> bool:
    """Take the wishes over; whether sizes or fonts changed, which widgets that are there already do not follow."""
    global _look
    before, _look = _look, look
    dark = _wants_dark(application)
    if before != look or dark is not _current.dark:  # a new style sheet takes a moment
        apply(application, dark)
    return (before.family, before.text_size, before.code_size) != (look.family, look.text_size, look.code_size)


def _wants_dark(application: QApplication) -> bool:
    if _look.scheme == "system":
        return application.styleHints().colorScheme() == Qt.ColorScheme.Dark
    return _look.scheme == "dark"


def apply(application: QApplication, dark: bool) -> None:
    """Switch to light or dark. Widgets that paint themselves repaint on the palette change this sends."""
    global _current
    _current = DARK if dark else LIGHT
    application.setPalette(_palette(_current))
    application.setFont(font())
    application.setStyleSheet(_style_sheet(_current))


def moves() -> bool:
    """Whether things may move on the screen: neither the user nor the system's style wants them still."""
    return not _look.reduced_motion and QApplication.style().styleHint(QStyle.StyleHint.SH_Widget_Animate) != 0


# --- type -------------------------------------------------------------------------------------------------------------

_scale = 1.0  # of all sizes, for people whose system font is larger


def _set_scale(scale: float) -> None:
    global _scale
    _scale = min(max(scale, 1.0), 2.0)


def px(size: float) -> int:
    """A length in logical pixels that grows with the system's font and with the size of text the user chose."""
    return round(size * _scale * _look.text_size / Look.text_size)


def font(size: float = 14, *, bold: bool = False, figures: bool = False) -> QFont:
    """The program's font. `figures`: digits of one width, for numbers that change in place."""
    made = QFont()
    made.setFamilies([_look.family, FAMILY] if _look.family else [FAMILY])  # the last one for Hangul
    made.setPixelSize(px(size))
    made.setWeight(QFont.Weight.DemiBold if bold else QFont.Weight.Normal)
    if figures:
        made.setFeature(QFont.Tag("tnum"), 1)
    return made


def code_font() -> QFont:
    made = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    made.setFamilies([*made.families(), "Menlo", "Consolas", "DejaVu Sans Mono", FAMILY])  # the last one for Hangul
    made.setStyleHint(QFont.StyleHint.Monospace)
    made.setPixelSize(round(_look.code_size * _scale))
    return made


def tip(text: str) -> str:
    """A text for a tooltip: long lines are wrapped, which Qt does with rich text only."""
    return f"<qt>{escape(text).replace(chr(10), '<br>')}</qt>" if text else ""


# --- colours ----------------------------------------------------------------------------------------------------------


def _palette(colors: Theme) -> QPalette:
    palette = QPalette()
    roles = {
        QPalette.ColorRole.Window: colors.window,
        QPalette.ColorRole.Base: colors.surface,
        QPalette.ColorRole.AlternateBase: colors.panel,
        QPalette.ColorRole.Button: colors.surface,
        QPalette.ColorRole.ToolTipBase: colors.surface,
        QPalette.ColorRole.WindowText: colors.text,
        QPalette.ColorRole.Text: colors.text,
        QPalette.ColorRole.ButtonText: colors.text,
        QPalette.ColorRole.ToolTipText: colors.text,
        QPalette.ColorRole.PlaceholderText: colors.muted,
        QPalette.ColorRole.Highlight: colors.accent,
        QPalette.ColorRole.HighlightedText: colors.on_accent,
        QPalette.ColorRole.Link: colors.accent,
    }
    for role, color in roles.items():
        palette.setColor(role, QColor(color))
    for role in (QPalette.ColorRole.Text, QPalette.ColorRole.WindowText, QPalette.ColorRole.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, role, colors.color("muted"))
    return palette


def _sign(name: str, colors: Theme) -> str:
    """The path of a small picture that a style sheet can name."""
    return (ASSETS / "icons" / f"{name}-{'dark' if colors.dark else 'light'}.svg").as_posix()


def _style_sheet(c: Theme) -> str:
    return f"""
    QMainWindow, #conversation, #column {{ background: {c.window}; }}
    QToolTip {{ background: {c.surface}; color: {c.text}; border: 1px solid {c.line}; padding: {px(6)}px; }}
    QLabel {{ background: transparent; }}
    QLabel[role="muted"] {{ color: {c.muted}; }}
    QLabel[role="warning"] {{ color: {c.warning}; }}
    QLabel[role="danger"] {{ color: {c.danger}; }}
    #header {{ background: {c.window}; border-bottom: 1px solid {c.line}; }}
    #panel, #panelContents {{ background: {c.panel}; }}
    #panel {{ border: none; border-left: 1px solid {c.line}; }}
    #bubble {{ background: {c.bubble}; border-radius: {px(16)}px; }}
    #inputFrame {{ background: {c.surface}; border: 1px solid {c.line}; border-radius: {px(18)}px; }}
    #inputFrame[focused="true"] {{ border: 1px solid {c.accent}; }}
    #notice {{ background: {c.warning_soft}; border-radius: {px(10)}px; color: {c.warning}; }}
    #banner {{ background: {c.danger_soft}; border-radius: {px(14)}px; }}
    #code {{ background: {c.panel}; border: 1px solid {c.line}; border-radius: {px(10)}px; }}
    TextView, InputBox {{ background: transparent; border: none; color: {c.text};
        selection-background-color: {c.accent}; selection-color: {c.on_accent}; }}
    QPushButton {{ background: transparent; border: none; border-radius: {px(8)}px; padding: {px(6)}px {px(12)}px;
        color: {c.text}; }}
    QPushButton:hover {{ background: {c.hover}; }}
    QPushButton:focus {{ outline: none; border: 1px solid {c.accent}; }}
    QPushButton[role="toggle"]:checked {{ background: {c.accent_soft}; }}
    QPushButton:disabled {{ color: {c.muted}; }}
    QPushButton[role="primary"] {{ background: {c.accent}; color: {c.on_accent}; font-weight: 600; }}
    QPushButton[role="primary"]:hover {{ background: {c.text}; color: {c.window}; }}
    QPushButton[role="quiet"] {{ color: {c.muted}; padding: {px(3)}px 0; border-radius: 0; }}
    QPushButton[role="quiet"]:hover {{ color: {c.accent}; background: transparent; }}
    QPushButton[role="quiet"]:focus {{ border: none; color: {c.accent}; text-decoration: underline; }}
    QPushButton[role="example"] {{ background: {c.surface}; border: 1px solid {c.line}; border-radius: {px(12)}px;
        padding: {px(10)}px {px(16)}px; }}
    QPushButton[role="example"]:hover {{ border-color: {c.accent}; }}
    QPushButton[role="round"] {{ background: {c.accent}; border-radius: {px(17)}px; padding: 0; }}
    QPushButton[role="round"]:hover {{ background: {c.text}; }}
    QPushButton[role="round"]:disabled {{ background: {c.hover}; }}
    QPushButton[role="bare"] {{ padding: 0; border-radius: {px(17)}px; }}
    QPushButton[role="float"] {{ background: {c.surface}; border: 1px solid {c.line}; border-radius: {px(17)}px;
        padding: 0; }}
    QPushButton[role="float"]:hover {{ background: {c.hover}; }}
    #modes {{ background: {c.hover}; border-radius: {px(10)}px; }}
    #modes > QPushButton {{ color: {c.muted}; border: 1px solid transparent; border-radius: {px(8)}px;
        padding: {px(5)}px {px(14)}px; background: transparent; }}
    #modes > QPushButton:hover {{ color: {c.text}; }}
    #modes > QPushButton:checked {{ color: {c.text}; }}
    #modes > QPushButton:focus {{ border-color: {c.accent}; }}
    #modes > QPushButton[available="false"] {{ color: {c.faint}; }}
    #modes > QPushButton[available="false"]:hover {{ color: {c.muted}; }}
    #sheet {{ background: {c.surface}; border: 1px solid {c.line}; }}
    #pill {{ background: {c.accent_soft}; color: {c.accent}; border-radius: {px(11)}px;
        padding: {px(3)}px {px(10)}px; }}
    QPushButton[role="fold"] {{ padding: {px(2)}px {px(4)}px {px(2)}px 0; border-radius: {px(4)}px; }}
    QPushButton[role="fold"]:hover {{ background: transparent; color: {c.accent}; }}
    #chip {{ background: {c.panel}; border: 1px solid {c.line}; border-radius: {px(10)}px; }}
    #note {{ background: {c.accent_soft}; border-radius: {px(10)}px; color: {c.text}; }}
    QDialog {{ background: {c.window}; }}
    QMenu {{ background: {c.surface}; color: {c.text}; border: 1px solid {c.line}; padding: {px(4)}px; }}
    QMenu::item {{ padding: {px(6)}px {px(22)}px; border-radius: {px(5)}px; }}
    QMenu::item:selected {{ background: {c.hover}; }}
    QMenu::item:disabled {{ color: {c.faint}; }}
    QMenu::separator {{ height: 1px; background: {c.line}; margin: {px(4)}px {px(8)}px; }}
    QLineEdit, QPlainTextEdit[role="field"], QSpinBox, QDoubleSpinBox, QComboBox {{ background: {c.surface};
        color: {c.text}; border: 1px solid {c.line}; border-radius: {px(7)}px; padding: {px(5)}px {px(9)}px;
        selection-background-color: {c.accent}; selection-color: {c.on_accent}; }}
    QLineEdit:focus, QPlainTextEdit[role="field"]:focus, QSpinBox:focus, QDoubleSpinBox:focus, QComboBox:focus {{
        border-color: {c.accent}; }}
    QSpinBox, QDoubleSpinBox {{ padding-right: 0; }}
    QLineEdit:disabled, QSpinBox:disabled, QDoubleSpinBox:disabled, QComboBox:disabled {{ color: {c.faint}; }}
    QComboBox QLineEdit, QAbstractSpinBox QLineEdit {{ border: none; background: transparent; }}
    QComboBox QLineEdit {{ padding: 0; }}
    QComboBox::drop-down {{ border: none; width: {px(26)}px; }}
    QComboBox::down-arrow {{ image: url({_sign("down", c)}); width: {px(14)}px; height: {px(14)}px; }}
    QComboBox QAbstractItemView {{ background: {c.surface}; color: {c.text}; border: 1px solid {c.line};
        selection-background-color: {c.hover}; selection-color: {c.text}; outline: none; padding: {px(3)}px; }}
    QSpinBox::up-button, QDoubleSpinBox::up-button, QSpinBox::down-button, QDoubleSpinBox::down-button {{ border: none;
        width: {px(22)}px; background: transparent; }}
    QSpinBox::up-arrow, QDoubleSpinBox::up-arrow {{ image: url({_sign("up", c)}); width: {px(11)}px;
        height: {px(11)}px; }}
    QSpinBox::down-arrow, QDoubleSpinBox::down-arrow {{ image: url({_sign("down", c)}); width: {px(11)}px;
        height: {px(11)}px; }}
    QCheckBox {{ spacing: {px(9)}px; color: {c.text}; border: 1px solid transparent; border-radius: {px(5)}px;
        padding: {px(2)}px; }}
    QCheckBox:focus {{ border-color: {c.accent}; }}
    QCheckBox::indicator {{ width: {px(16)}px; height: {px(16)}px; border: 1px solid {c.faint};
        border-radius: {px(5)}px; background: {c.surface}; }}
    QCheckBox::indicator:checked {{ background: {c.accent}; border-color: {c.accent};
        image: url({_sign("check", c)}); }}
    #card {{ background: {c.surface}; border: 1px solid {c.line}; border-radius: {px(12)}px; }}
    #strip {{ background: {c.accent_soft}; border-bottom: 1px solid {c.line}; }}
    #strip[role="failed"] {{ background: {c.danger_soft}; }}
    #tabs {{ background: {c.hover}; border-radius: {px(10)}px; }}
    QPushButton[role="tab"] {{ color: {c.muted}; border: 1px solid transparent; padding: {px(4)}px {px(12)}px; }}
    QPushButton[role="tab"]:hover {{ color: {c.text}; background: transparent; }}
    QPushButton[role="tab"]:checked {{ background: {c.chosen}; color: {c.text}; border-color: {c.line}; }}
    QPushButton[role="tab"]:focus {{ border-color: {c.accent}; }}
    QPushButton[role="primary"]:disabled {{ background: {c.hover}; color: {c.muted}; }}
    QPushButton[role="plain"] {{ background: {c.surface}; border: 1px solid {c.line}; }}
    QPushButton[role="plain"]:hover {{ background: {c.hover}; }}
    QPushButton[role="plain"]:focus {{ border-color: {c.accent}; }}
    QPushButton[role="plain"]:disabled {{ color: {c.faint}; }}
    QListView#sections {{ background: {c.panel}; border: none; border-right: 1px solid {c.line}; outline: none;
        padding: {px(12)}px {px(10)}px; color: {c.text}; }}
    QListView#sections::item {{ padding: {px(8)}px {px(12)}px; border-radius: {px(8)}px; border: 1px solid transparent;
        color: {c.text}; }}
    QListView#sections::item:hover {{ background: {c.hover}; }}
    QListView#sections::item:selected {{ background: {c.chosen}; border-color: {c.line}; }}
    QListView#sections::item:selected:focus {{ border-color: {c.accent}; }}
    #sidebar {{ background: {c.panel}; border: none; }}
    QSplitter::handle {{ background: {c.line}; }}
    QListView#conversations {{ background: transparent; border: none; outline: none; }}
    #key {{ background: {c.panel}; border: 1px solid {c.line}; border-radius: {px(5)}px;
        padding: {px(2)}px {px(7)}px; }}
    QProgressBar {{ background: {c.hover}; border: none; border-radius: {px(2)}px;
        max-height: {px(4)}px; min-height: {px(4)}px; }}
    QProgressBar::chunk {{ background: {c.accent}; border-radius: {px(2)}px; }}
    QScrollArea {{ border: none; background: transparent; }}
    QScrollBar:vertical {{ background: transparent; width: {px(10)}px; margin: 0; }}
    QScrollBar:horizontal {{ background: transparent; height: {px(10)}px; margin: 0; }}
    QScrollBar::handle {{ background: {c.line}; border-radius: {px(4)}px; margin: 1px;
        min-height: {px(32)}px; min-width: {px(32)}px; }}
    QScrollBar::handle:hover {{ background: {c.muted}; }}
    QScrollBar::add-line, QScrollBar::sub-line, QScrollBar::add-page, QScrollBar::sub-page {{
        background: transparent; height: 0; width: 0; }}
    """
