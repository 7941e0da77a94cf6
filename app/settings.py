"""What the user has chosen, and the file that remembers it.

`Settings` are plain values with a default each; `SettingsStore` keeps them in the user's configuration folder. A file
that cannot be read is set aside, never thrown away, and whatever in it makes sense is taken over. Knows nothing of
widgets.
"""

from __future__ import annotations

import json
import os
import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import platformdirs

from app.i18n import translate
from engine.events import LoadSettings, Mode, SamplerSettings

ThemeName = Literal["system", "light", "dark"]
LanguageName = Literal["system", "en", "ko"]
Overflow = Literal["drop", "stop"]
CacheType = Literal["f16", "q8_0", "q4_0"]

# The settings of the sampler that come with the program, by the names under which they are stored.
SAMPLERS: Mapping[str, SamplerSettings] = {
    "precise": SamplerSettings(temperature=0.0),
    "balanced": SamplerSettings(temperature=0.7, top_k=40, top_p=0.95, min_p=0.05),
    "creative": SamplerSettings(temperature=1.0, top_k=0, top_p=1.0, min_p=0.05, presence_penalty=0.2),
}
# System prompts that come with the program. English, since most models follow it best; they speak of the language.
SYSTEM_PROMPTS: Mapping[str, str] = {
    "none": "",
    "brief": "Answer in the language of the question, as briefly as the matter allows.",
    "teacher": "Explain step by step, in plain words and in the language of the question, with one small example.",
    "programmer": "You help with programs. Show complete code first, then say in a few sentences how it works.",
}
EMBEDDED = ""  # the key under which the drafters of the model that comes with the program are kept
SMALLEST_CONTEXT, LARGEST_CONTEXT = 256, 1 << 20
SMALLEST_FONT, LARGEST_FONT = 9, 32


@dataclass
class Settings:
    """Every field has a default, so that a file may lack any of them. None always means: chosen by the program."""

    mode: Mode | None = None
    target: str | None = None  # path; None = the model that comes with the program
    drafters: dict[str, dict[Mode, str]] = field(default_factory=dict)  # by target path, `EMBEDDED` for None
    context: int = 4096
    threads: int | None = None
    gpu_layers: int = -1  # -1 = as many as fit
    device: str | None = None
    kv_type: CacheType = "f16"
    overflow: Overflow = "drop"
    draft_length: int | None = None
    sampler_name: str = "precise"  # in SAMPLERS or `samplers`
    samplers: dict[str, SamplerSettings] = field(default_factory=dict)  # the user's own
    system_prompt_name: str = "none"  # in SYSTEM_PROMPTS or `system_prompts`
    system_prompts: dict[str, str] = field(default_factory=dict)  # the user's own
    show_origins: bool = False  # answers are coloured by where their tokens came from
    theme: ThemeName = "system"
    language: LanguageName = "system"
    font_family: str | None = None  # None = the one that comes with the program
    font_size: int = 14  # of the text, in pixels at 100 %
    code_size: int = 13
    reduced_motion: bool = False

    def sampler(self) -> SamplerSettings:
        """What the next answer is sampled with."""
        return self.samplers.get(self.sampler_name) or SAMPLERS.get(self.sampler_name) or SAMPLERS["precise"]

    def system_prompt(self) -> str | None:
        """What the model is told before the conversation; None: nothing."""
        name = self.system_prompt_name
        return self.system_prompts.get(name) or SYSTEM_PROMPTS.get(name) or None

    def drafters_of(self, target: str | None) -> dict[Mode, str]:
        """The drafters the user chose for a target; where none is chosen the catalogue decides."""
        return dict(self.drafters.get(target or EMBEDDED, {}))

    def load_settings(self) -> LoadSettings:
        """What a target is loaded with. Two that are equal need no reload."""
        return LoadSettings(
            target=self.target,
            drafters=self.drafters_of(self.target),
            context=self.context,
            threads=self.threads,
            gpu_layers=self.gpu_layers,
            device=self.device,
            kv_type=self.kv_type,
            overflow=self.overflow,
        )


def given_by(load: LoadSettings) -> dict[str, Any]:
    """What `SettingsStore` is given so that `load` comes of it, as far as it is not the usual."""
    given: dict[str, Any] = {"drafters": dict(load.drafters)} if load.drafters else {}
    usual = LoadSettings()
    for name in ("target", "context", "threads", "gpu_layers", "device", "kv_type", "overflow"):
        if getattr(load, name) != getattr(usual, name):
            given[name] = getattr(load, name)
    return given


def settings_file() -> Path:
    return Path(platformdirs.user_config_dir("dflash-chat", appauthor=False)) / "settings.json"


class SettingsStore:
    """The settings of this run, and the file they are kept in.

    `path` None keeps nothing. `given` are values for this run alone, such as those of the command line: they hold until
    the user changes them, and are not stored before. Its "drafters" are those of the run's target.
    """

    def __init__(self, path: Path | None = None, given: Mapping[str, Any] | None = None) -> None:
        self.path = path
        self._set_aside: tuple[str, str] | None = None  # what was wrong with the file, and where it is kept
        self._stored = self._read() if path is not None else Settings()
        if self._set_aside is not None and self._stored != Settings():
            with suppress(OSError):
                self._write()  # what could be read is there the next time, too
        self._given = dict(given or {})
        if "drafters" in self._given:
            target = self._given.get("target", self._stored.target) or EMBEDDED
            self._given["drafters"] = {**self._stored.drafters, target: self._given["drafters"]}
        self.settings = replace(self._stored, **self._given)

    @property
    def trouble(self) -> str | None:
        """One sentence, when the file was not as it should be."""
        if self._set_aside is None:
            return None
        words = translate(
            "Settings",
            "The settings file could not be read completely ({what}); defaults are used. It is kept as {file}.",
        )
        return words.format(what=self._set_aside[0], file=self._set_aside[1])

    def change(self, **values: Any) -> set[str]:
        """Take over values and store them: the names of those that are different now. Raises OSError."""
        changed = {name for name, value in values.items() if getattr(self.settings, name) != value}
        if changed:
            self.settings = replace(self.settings, **{name: values[name] for name in changed})
            for name in changed:
                self._given.pop(name, None)
            self._stored = replace(self.settings, **{name: getattr(self._stored, name) for name in self._given})
            self._write()
        return changed

    def defaults(self) -> dict[str, Any]:
        """What `change` takes to go back to the defaults. Samplers and system prompts that the user wrote stay."""
        usual = Settings()
        kept = ("samplers", "system_prompts")
        return {found.name: getattr(usual, found.name) for found in fields(Settings) if found.name not in kept}

    # --- the file

    def _read(self) -> Settings:
        assert self.path is not None
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return Settings()
        except (OSError, UnicodeDecodeError) as error:
            return self._broken(Settings(), str(error))
        try:
            found = json.loads(text)
            if not isinstance(found, dict):
                raise ValueError("it does not hold an object")
        except (ValueError, RecursionError) as error:
            return self._broken(Settings(), str(error))
        settings, refused = _settings_from(found)
        return self._broken(settings, ", ".join(refused)) if refused else settings

    def _broken(self, settings: Settings, what: str) -> Settings:
        """Keep the file under another name, so that nothing of it is lost, and go on with what could be read."""
        assert self.path is not None
        kept = _free_name(self.path)
        try:
            os.replace(self.path, kept)
            aside = str(kept)
        except OSError:
            aside = str(self.path)
        self._set_aside = (what, aside)
        return settings

    def _write(self) -> None:
        """Whole or not at all: a program that ends meanwhile leaves the old file."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_name(f"{self.path.name}.{os.getpid()}.new")
        try:
            with open(unfinished, "w", encoding="utf-8") as file:
                json.dump(asdict(self._stored), file, ensure_ascii=False, indent=2, default=str)
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, self.path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise


def _free_name(path: Path) -> Path:
    number = 1
    while (kept := path.with_name(f"{path.stem}-broken-{number}{path.suffix}")).exists():
        number += 1
    return kept


# --- what a file may say ----------------------------------------------------------------------------------------------

_LIMITS: Mapping[str, Callable[[Any], bool]] = {
    "context": lambda value: SMALLEST_CONTEXT <= value <= LARGEST_CONTEXT,
    "threads": lambda value: value is None or 1 <= value <= 1024,
    "gpu_layers": lambda value: value >= -1,
    "draft_length": lambda value: value is None or 1 <= value <= 64,
    "font_size": lambda value: SMALLEST_FONT <= value <= LARGEST_FONT,
    "code_size": lambda value: SMALLEST_FONT <= value <= LARGEST_FONT,
}


def _settings_from(found: Mapping[str, Any]) -> tuple[Settings, list[str]]:
    """The settings a file's object means, and the names of the fields that make no sense (defaults stand for them).

    A field that this version does not know is no error: another version wrote it.
    """
    types_of = get_type_hints(Settings)
    taken: dict[str, Any] = {}
    refused: list[str] = []
    for name, type_ in types_of.items():
        if name not in found:
            continue
        try:
            value = _value(found[name], type_)
            if not _LIMITS.get(name, lambda _: True)(value):
                raise ValueError
            taken[name] = value
        except (TypeError, ValueError, KeyError):
            refused.append(name)
    return Settings(**taken), refused


def _value(found: Any, type_: Any) -> Any:
    """`found`, as `json` gives it, as a value of `type_`; raises TypeError or ValueError where it is none."""
    origin = get_origin(type_)
    if origin in (Union, types.UnionType):
        if found is None and type(None) in get_args(type_):
            return None
        return _value(found, next(one for one in get_args(type_) if one is not type(None)))
    if origin is Literal:
        if found not in get_args(type_):
            raise ValueError
        return found
    if origin is dict:
        key_type, value_type = get_args(type_)
        if not isinstance(found, dict):
            raise TypeError
        return {_value(key, key_type): _value(value, value_type) for key, value in found.items()}
    if type_ is SamplerSettings:
        return _sampler(found)
    if issubclass(type_, Enum):
        return type_(found)
    if type_ is float and type(found) is int:
        return float(found)
    if type(found) is not type_:  # a bool is no int here
        raise TypeError
    return found


def _sampler(found: Any) -> SamplerSettings:
    if not isinstance(found, dict):
        raise TypeError
    types_of = get_type_hints(SamplerSettings)
    return SamplerSettings(**{name: _value(value, types_of[name]) for name, value in found.items()})
