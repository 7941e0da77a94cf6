"""Colours, type and the style sheet, light and dark, and the fonts that come with the program.

Everything that has a colour asks `theme()`. Knows nothing of what the widgets are for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontInfo, QGuiApplication, QIcon, QPalette
from PySide6.QtWidgets import QApplication

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
    hints = application.styleHints()
    hints.colorSchemeChanged.connect(lambda scheme: apply(application, scheme == Qt.ColorScheme.Dark))
    apply(application, hints.colorScheme() == Qt.ColorScheme.Dark)


def apply(application: QApplication, dark: bool) -> None:
    """Switch to light or dark. Widgets that paint themselves repaint on the palette change this sends."""
    global _current
    _current = DARK if dark else LIGHT
    application.setPalette(_palette(_current))
    application.setFont(font())
    application.setStyleSheet(_style_sheet(_current))


# --- type -------------------------------------------------------------------------------------------------------------

_scale = 1.0  # of all sizes, for people whose system font is larger


def _set_scale(scale: float) -> None:
    global _scale
    _scale = min(max(scale, 1.0), 2.0)


def px(size: float) -> int:
    """A length in logical pixels that grows with the system's font."""
    return round(size * _scale)


def font(size: float = 14, *, bold: bool = False, figures: bool = False) -> QFont:
    """The program's font. `figures`: digits of one width, for numbers that change in place."""
    made = QFont(FAMILY)
    made.setPixelSize(px(size))
    made.setWeight(QFont.Weight.DemiBold if bold else QFont.Weight.Normal)
    if figures:
        made.setFeature(QFont.Tag("tnum"), 1)
    return made


def code_font() -> QFont:
    made = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    made.setFamilies([*made.families(), "Menlo", "Consolas", "DejaVu Sans Mono", FAMILY])  # the last one for Hangul
    made.setStyleHint(QFont.StyleHint.Monospace)
    made.setPixelSize(px(13))
    return made


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
    QPushButton[role="float"] {{ background: {c.surface}; border: 1px solid {c.line}; border-radius: {px(17)}px;
        padding: 0; }}
    QPushButton[role="float"]:hover {{ background: {c.hover}; }}
    #modes {{ background: {c.hover}; border-radius: {px(10)}px; }}
    #modes QPushButton {{ color: {c.muted}; border: 1px solid transparent; border-radius: {px(8)}px;
        padding: {px(5)}px {px(14)}px; }}
    #modes QPushButton:hover {{ color: {c.text}; background: transparent; }}
    #modes QPushButton:checked {{ background: {c.chosen}; color: {c.text}; font-weight: 600; }}
    #modes QPushButton:focus {{ border-color: {c.accent}; }}
    #modes QPushButton:disabled {{ color: {c.faint}; }}
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
