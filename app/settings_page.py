"""The settings dialog: how answers are made, what is loaded, how the window looks.

A change is stored and applied at once; what concerns the loading of the model waits for a reload, which the dialog
offers. It shows a `SettingsStore` and says what was changed; it applies nothing itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QCloseEvent, QFontDatabase, QHideEvent
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.definitions import bytes_text, mode_name
from app.i18n import LANGUAGES, translate
from app.preset_forms import SamplerForm, SystemPromptForm
from app.settings import (
    EMBEDDED,
    LARGEST_CONTEXT,
    LARGEST_FONT,
    SMALLEST_CONTEXT,
    SMALLEST_FONT,
    Settings,
    SettingsStore,
)
from app.settings_form import Form
from app.theme import FAMILY, font, px
from engine.events import DeviceInfo, LoadSettings, Mode, ModeInfo

LONGEST_DRAFT = 64


class SettingsDialog(QDialog):
    changed = Signal(set)  # names of the fields of `Settings` that are different now
    reload = Signal()

    def __init__(self, store: SettingsStore, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(translate("Settings", "Settings"))
        self.resize(px(780), px(640))
        self._store = store
        self._loaded: LoadSettings | None = None
        self._modes: tuple[ModeInfo, ...] = ()
        self._devices: tuple[DeviceInfo, ...] = ()
        self.sections = QListWidget()
        self.sections.setObjectName("sections")
        self.sections.setFont(font(14))
        self.sections.setFixedWidth(px(176))
        self.sections.setAccessibleName(translate("Settings", "Sections"))
        self.pages = QStackedWidget()
        self.samplers = SamplerForm()
        self.prompts = SystemPromptForm()
        self.answers, self.model, self.look = self._answers(), self._model(), self._look()
        for words, form in (
            (translate("Settings", "Answers"), self.answers),
            (translate("Settings", "Model"), self.model),
            (translate("Settings", "Appearance"), self.look),
        ):
            form.changed.connect(self._change)
            page = QScrollArea()
            page.setWidgetResizable(True)
            page.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
            page.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            page.setWidget(form)
            self.pages.addWidget(page)
            self.sections.addItem(words)
        self.samplers.changed.connect(self._change_all)
        self.prompts.changed.connect(self._change_all)
        self.sections.currentRowChanged.connect(self.pages.setCurrentIndex)
        self.sections.setCurrentRow(0)
        middle = QHBoxLayout()
        middle.setSpacing(0)
        middle.addWidget(self.sections)
        middle.addWidget(self.pages, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(middle, 1)
        column.addWidget(self._foot())
        self.show_settings()

    # --- the pages

    def _answers(self) -> Form:
        form = Form()
        form.heading(translate("Settings", "Answers"))
        form.choice(
            "mode",
            translate("Settings", "Mode"),
            translate("Settings", "How answers are decoded. The words are the model's own in every mode."),
            [(None, translate("Settings", "The best there is")), *((mode, mode_name(mode)) for mode in Mode)],
        )
        form.number(
            "draft_length",
            translate("Settings", "Draft length"),
            translate("Settings", "How many tokens are drafted and checked in a pass. Automatic measures what pays."),
            1,
            LONGEST_DRAFT,
            nothing=(0, None, translate("Settings", "Automatic")),
        )
        form.add(self.prompts)
        form.add(self.samplers)
        form.stretch()
        return form

    def _model(self) -> Form:
        form = Form()
        form.heading(translate("Settings", "Model"))
        self.target = FileChoice(translate("Settings", "The model that comes with the program"))
        self.target.chosen.connect(lambda path: self._change("target", path))
        form.row(
            "target",
            translate("Settings", "Target"),
            translate("Settings", "The model that answers: a GGUF file."),
            self.target,
            below=True,
        )
        self.drafters: dict[Mode, FileChoice] = {}
        for mode in (Mode.DFLASH, Mode.DFLASH2):
            choice = FileChoice(translate("Settings", "Automatic"))
            choice.chosen.connect(lambda path, mode=mode: self._choose_drafter(mode, path))
            form.row(
                f"drafter_{mode.value}",
                translate("Settings", "Drafter for {mode}").format(mode=mode_name(mode)),
                translate("Settings", "For this target. Automatic takes the best of those that fit."),
                choice,
                below=True,
            )
            self.drafters[mode] = choice
        form.number(
            "context",
            translate("Settings", "Context length"),
            translate("Settings", "Tokens the model can have before it. More takes more memory."),
            SMALLEST_CONTEXT,
            LARGEST_CONTEXT,
            step=1024,
        )
        form.choice(
            "overflow",
            translate("Settings", "When the context is full"),
            translate("Settings", "The system prompt always stays."),
            [
                ("drop", translate("Settings", "Leave out the oldest turns")),
                ("stop", translate("Settings", "Stop, and say so")),
            ],
        )
        form.choice(
            "kv_type",
            translate("Settings", "Keys and values"),
            translate("Settings", "How the context is kept in memory. Smaller types take less of it, and round more."),
            [
                ("f16", translate("Settings", "16 bits (exact)")),
                ("q8_0", translate("Settings", "8 bits (half the memory)")),
                ("q4_0", translate("Settings", "4 bits (a quarter)")),
            ],
        )
        form.number(
            "threads",
            translate("Settings", "Threads"),
            translate("Settings", "Automatic takes one for each core of the processor."),
            1,
            1024,
            nothing=(0, None, translate("Settings", "Automatic")),
        )
        self._device = QComboBox()
        self._device.setFont(font(13))
        self._device.activated.connect(lambda number: self._change("device", self._device.itemData(number)))
        form.row(
            "device",
            translate("Settings", "Device"),
            translate("Settings", "Where the model is computed."),
            self._device,
        )
        form.number(
            "gpu_layers",
            translate("Settings", "Layers on the GPU"),
            translate("Settings", "How many of the model's layers go to the GPU, where there is one."),
            0,
            1000,
            nothing=(-1, -1, translate("Settings", "As many as fit")),
        )
        form.stretch()
        return form

    def _look(self) -> Form:
        form = Form()
        form.heading(translate("Settings", "Appearance"))
        form.choice(
            "theme",
            translate("Settings", "Theme"),
            "",
            [
                ("system", translate("Settings", "As the system")),
                ("light", translate("Settings", "Light")),
                ("dark", translate("Settings", "Dark")),
            ],
        )
        form.flag(
            "show_origins",
            translate("Settings", "Colour the tokens"),
            translate("Settings", "Answers show which tokens were drafted, and what else the target considered."),
        )
        form.choice(
            "language",
            translate("Settings", "Language"),
            translate("Settings", "Of the window. The model answers in the language you write."),
            [("system", translate("Settings", "As the system")), *LANGUAGES.items()],
        )
        families = [family for family in QFontDatabase.families() if family != FAMILY]
        form.choice(
            "font_family",
            translate("Settings", "Font"),
            "",
            [
                (None, translate("Settings", "{family} (built in)").format(family=FAMILY)),
                *((family, family) for family in families),
            ],
        )
        form.number(
            "font_size",
            translate("Settings", "Text size"),
            translate("Settings", "Everything in the window grows with it. Also: Ctrl and + or −."),
            SMALLEST_FONT,
            LARGEST_FONT,
        )
        form.number("code_size", translate("Settings", "Code size"), "", SMALLEST_FONT, LARGEST_FONT)
        form.flag(
            "reduced_motion", translate("Settings", "Reduced motion"), translate("Settings", "Nothing slides or fades.")
        )
        form.stretch()
        return form

    def _foot(self) -> QWidget:
        foot = QWidget()
        column = QVBoxLayout(foot)
        column.setContentsMargins(px(16), px(10), px(16), px(14))
        column.setSpacing(px(10))
        self.note = QFrame()
        self.note.setObjectName("note")
        self.note_text = QLabel()
        self.note_text.setFont(font(13))
        self.note_text.setWordWrap(True)
        self.reload_button = QPushButton(translate("Settings", "Reload now"))
        self.reload_button.setProperty("role", "primary")
        self.reload_button.clicked.connect(self.reload)
        inside = QHBoxLayout(self.note)
        inside.setContentsMargins(px(14), px(8), px(8), px(8))
        inside.addWidget(self.note_text, 1)
        inside.addWidget(self.reload_button)
        self.reset_button = QPushButton(translate("Settings", "Back to the defaults"))
        self.close_button = QPushButton(translate("Settings", "Close"))
        for button in (self.reset_button, self.close_button):
            button.setProperty("role", "plain")
            button.setAutoDefault(False)
        self.reload_button.setAutoDefault(False)
        self.reset_button.clicked.connect(lambda: self._change_all(self._store.defaults()))
        self.close_button.clicked.connect(self.close)
        row = QHBoxLayout()
        row.addWidget(self.reset_button)
        row.addStretch(1)
        row.addWidget(self.close_button)
        column.addWidget(self.note)
        column.addLayout(row)
        return foot

    # --- showing

    def show_loaded(self, loaded: LoadSettings | None, modes: tuple[ModeInfo, ...]) -> None:
        """What the engine was last told to load, and the modes it came with."""
        self._loaded, self._modes = loaded, modes
        self.show_settings()

    def show_devices(self, devices: tuple[DeviceInfo, ...]) -> None:
        self._devices = devices
        self.show_settings()

    def show_settings(self) -> None:
        settings = self._store.settings
        for form in (self.answers, self.model, self.look):
            form.show_values(settings)
        self.samplers.show_settings(settings)
        self.prompts.show_settings(settings)
        self.target.show_path(settings.target)
        found = {info.mode: info.drafter for info in self._modes}
        for mode, choice in self.drafters.items():
            choice.show_path(settings.drafters_of(settings.target).get(mode), found.get(mode))
        self._show_devices(settings)
        self._show_note(settings)

    def _show_devices(self, settings: Settings) -> None:
        box = self._device
        box.clear()
        box.addItem(translate("Settings", "Automatic"), None)
        for device in self._devices:
            memory = f", {bytes_text(device.total)}" if device.total else ""
            box.addItem(f"{device.name} ({device.description}{memory})", device.name)
        if settings.device is not None and box.findData(settings.device) < 0:
            box.addItem(settings.device, settings.device)
        box.setCurrentIndex(max(0, box.findData(settings.device)) if settings.device is not None else 0)
        has_gpu = not self._devices or any(device.kind != "cpu" for device in self._devices)
        self.model.controls["gpu_layers"].setEnabled(has_gpu)
        if not has_gpu:
            self.model.hints["gpu_layers"].setText(
                translate("Settings", "This build of the engine computes on the processor only.")
            )

    def _show_note(self, settings: Settings, trouble: str = "") -> None:
        waits = self._loaded is not None and settings.load_settings() != self._loaded
        self.note.setVisible(waits or bool(trouble))
        self.reload_button.setVisible(waits and not trouble)
        self.note_text.setText(
            trouble or translate("Settings", "Some changes take effect when the model is loaded again. The chat stays.")
        )

    # --- changing

    def _change(self, name: str, value: Any) -> None:
        self._change_all({name: value})

    def _change_all(self, values: dict[str, Any]) -> None:
        trouble = ""
        try:
            changed = self._store.change(**values)
        except OSError as error:
            changed = set(values)
            words = translate(
                "Settings", "The settings could not be stored ({reason}); they hold until the program ends."
            )
            trouble = words.format(reason=error.strerror or error)
        if changed:
            self.changed.emit(changed)
        self.show_settings()
        if trouble:
            self._show_note(self._store.settings, trouble)

    def _choose_drafter(self, mode: Mode, path: str | None) -> None:
        settings = self._store.settings
        chosen = settings.drafters_of(settings.target)
        if path is None:
            chosen.pop(mode, None)
        else:
            chosen[mode] = path
        self._change("drafters", {**settings.drafters, settings.target or EMBEDDED: chosen})

    def hideEvent(self, event: QHideEvent) -> None:
        self.prompts.commit()
        super().hideEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        self.prompts.commit()
        super().closeEvent(event)


class FileChoice(QWidget):
    """A file that was chosen, or that the program chooses."""

    chosen = Signal(object)  # path, or None: the program chooses

    def __init__(self, automatic: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._automatic = automatic
        self.path: str | None = None
        self.name = QLabel()
        self.name.setFont(font(13))
        self.name.setTextFormat(Qt.TextFormat.PlainText)
        self.choose = QPushButton(translate("Settings", "Choose…"))
        self.back = QPushButton(automatic)
        for button in (self.choose, self.back):
            button.setProperty("role", "plain")
            button.setFont(font(13))
            button.setAutoDefault(False)
        self.choose.clicked.connect(self._choose)
        self.back.clicked.connect(lambda: self.chosen.emit(None))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, px(4), 0, 0)
        row.setSpacing(px(8))
        row.addWidget(self.name, 1)
        row.addWidget(self.back)
        row.addWidget(self.choose)
        self.setFocusProxy(self.choose)

    def show_path(self, path: str | None, found: str | None = None) -> None:
        """`found`: what the program took."""
        self.path = path
        words = Path(path).name if path else self._automatic
        if not path and found:
            words = f"{self._automatic}: {Path(found).name}"
        self.name.setText(self.name.fontMetrics().elidedText(words, Qt.TextElideMode.ElideMiddle, px(300)))
        self.name.setToolTip(path or found or "")
        self.back.setVisible(path is not None)

    def _choose(self) -> None:
        start = str(Path(self.path).parent) if self.path else ""
        path, _ = QFileDialog.getOpenFileName(
            self, translate("Settings", "Choose a model file"), start, translate("Settings", "GGUF models (*.gguf)")
        )
        if path:
            self.chosen.emit(path)
