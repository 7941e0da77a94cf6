"""The two parts of the settings that have presets: the sampler and the system prompt.

A preset of the program stays as it is: whoever changes one gets one of their own. Knows nothing of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.i18n import QT_TRANSLATE_NOOP, translate
from app.presets import PresetChooser, free_name
from app.settings import SYSTEM_PROMPTS, Settings
from app.settings_form import Form, TextField

SAMPLER_NAMES = {
    "precise": QT_TRANSLATE_NOOP("Presets", "Precise"),
    "balanced": QT_TRANSLATE_NOOP("Presets", "Balanced"),
    "creative": QT_TRANSLATE_NOOP("Presets", "Creative"),
}
PROMPT_NAMES = {
    "none": QT_TRANSLATE_NOOP("Presets", "None"),
    "brief": QT_TRANSLATE_NOOP("Presets", "Brief"),
    "teacher": QT_TRANSLATE_NOOP("Presets", "Patient teacher"),
    "programmer": QT_TRANSLATE_NOOP("Presets", "Programmer"),
}


class _PresetForm(Form):
    """A form under a chooser. `changed` carries whole fields of `Settings`."""

    changed = Signal(dict)

    NAME = ""  # the field of `Settings` that names the preset
    OWN = ""  # and the one that holds the user's own

    def __init__(self, title: str, hint: str, names: Mapping[str, str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.lie_flush()
        self._names = names
        self._current = Settings()
        self.chooser = PresetChooser(title)
        self.row(self.NAME, title, hint, self.chooser, below=True)
        self.chooser.chosen.connect(lambda name: self.changed.emit({self.NAME: name}))
        self.chooser.renamed.connect(self._rename)
        self.chooser.deleted.connect(self._delete)

    def show_settings(self, settings: Settings) -> None:
        self._current = settings
        names = {name: translate("Presets", words) for name, words in self._names.items()}
        self.chooser.show_presets(names, list(self._own()), getattr(settings, self.NAME))

    def _own(self) -> dict[str, Any]:
        return dict(getattr(self._current, self.OWN))

    def _keep(self, value: Any) -> None:
        """Take a changed preset over: under its name where it is the user's own, else under a new one."""
        own, name = self._own(), getattr(self._current, self.NAME)
        if name not in own:
            words = translate("Presets", self._names[name]) if name in self._names else name
            name = free_name(translate("Presets", "{name}, my version").format(name=words), [*own, *self._names])
        self.changed.emit({self.OWN: {**own, name: value}, self.NAME: name})

    def _rename(self, old: str, new: str) -> None:
        own = self._own()
        new = free_name(new, (set(own) | set(self._names)) - {old})
        self.changed.emit({self.OWN: {new if name == old else name: own[name] for name in own}, self.NAME: new})

    def _delete(self, name: str) -> None:
        own = self._own()
        own.pop(name, None)
        self.changed.emit({self.OWN: own, self.NAME: next(iter(self._names))})


class SamplerForm(_PresetForm):
    NAME, OWN = "sampler_name", "samplers"

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            translate("Settings", "Choice of words"),
            translate("Settings", "Precise always takes the likeliest token. Higher temperatures are more surprising."),
            SAMPLER_NAMES,
            parent,
        )
        self.fields = _SamplerFields()
        self.fields.lie_flush()
        self.add(self.fields)
        self.fields.changed.connect(self._change)

    def show_settings(self, settings: Settings) -> None:
        super().show_settings(settings)
        self.fields.show_values(settings.sampler())

    def _change(self, name: str, value: Any) -> None:
        self._keep(replace(self._current.sampler(), **{name: value}))


class _SamplerFields(Form):
    def __init__(self) -> None:
        super().__init__()
        off = translate("Settings", "Off")
        self.decimal(
            "temperature",
            translate("Settings", "Temperature"),
            translate("Settings", "0 always takes the likeliest token."),
            0.0,
            5.0,
            0.1,
        )
        self.number(
            "top_k",
            translate("Settings", "Top k"),
            translate("Settings", "Only the k likeliest tokens are drawn from."),
            1,
            1000,
            nothing=(0, 0, off),
        )
        self.decimal(
            "top_p",
            translate("Settings", "Top p"),
            translate("Settings", "Only the likeliest tokens that make up this share; 1 is off."),
            0.01,
            1.0,
            0.05,
        )
        self.decimal(
            "min_p",
            translate("Settings", "Min p"),
            translate("Settings", "Only tokens at least this likely, compared with the likeliest; 0 is off."),
            0.0,
            1.0,
            0.01,
        )
        self.decimal(
            "repetition_penalty",
            translate("Settings", "Repetition penalty"),
            translate("Settings", "Makes tokens that were said less likely; 1 is off."),
            0.5,
            2.0,
            0.05,
        )
        self.decimal(
            "presence_penalty",
            translate("Settings", "Presence penalty"),
            translate("Settings", "The same for every token that was said; 0 is off."),
            -2.0,
            2.0,
            0.1,
        )
        self.decimal(
            "frequency_penalty",
            translate("Settings", "Frequency penalty"),
            translate("Settings", "Grows with how often it was said; 0 is off."),
            -2.0,
            2.0,
            0.1,
        )
        self.number(
            "penalty_last_n",
            translate("Settings", "Penalties look back"),
            translate("Settings", "How many of the newest tokens they see."),
            0,
            100_000,
            step=16,
            nothing=(-1, -1, translate("Settings", "All")),
        )
        self.number(
            "seed",
            translate("Settings", "Seed"),
            translate("Settings", "The same seed draws the same answer."),
            0,
            2_000_000_000,
            nothing=(-1, None, translate("Settings", "A new one for each answer")),
        )


class SystemPromptForm(_PresetForm):
    NAME, OWN = "system_prompt_name", "system_prompts"

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            translate("Settings", "System prompt"),
            translate("Settings", "What the model is told before the conversation. It holds from the next answer on."),
            PROMPT_NAMES,
            parent,
        )
        self.text = TextField()
        self.text.setAccessibleName(translate("Settings", "Text of the system prompt"))
        self.add(self.text)
        self.text.committed.connect(self._keep)

    def show_settings(self, settings: Settings) -> None:
        super().show_settings(settings)
        name = settings.system_prompt_name
        self.text.show_text(settings.system_prompts.get(name, SYSTEM_PROMPTS.get(name, "")))

    def commit(self) -> None:
        self.text.commit()
