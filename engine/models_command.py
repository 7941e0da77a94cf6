"""`dflash-chat models`: its arguments, and what it prints. What a command does is done in the rooms that it calls.

Tables and JSON go to stdout; progress and remarks to stderr. Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import argparse
import contextlib
import getpass
import json
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.models_texts import (
    ProgressLine,
    access_of,
    count_text,
    download_line,
    look_line,
    method_of,
    model_json,
    offer_json,
    on_disk,
    print_table,
    repository_json,
    say,
    size_of,
)

if TYPE_CHECKING:
    from engine.finding import Offer
    from engine.gguf_file import Header
    from engine.hub import Hub
    from engine.library import Check, LocalModel
    from engine.remote_model import RemoteModel, Repository

FAILED_CHECK = 1
TEXT = "See what models and drafters are on this disk, and get others from the Hugging Face Hub."
EXAMPLES = """\
examples:
  dflash-chat models list                                    what is on this disk, and what fits what
  dflash-chat models find --target model.gguf                drafters on the Hub that fit a model, and why others do not
  dflash-chat models find qwen3 8b                           search the Hub for models
  dflash-chat models info z-lab/Qwen3.8-27B-DFlash2-GGUF     what a repository holds, before anything is downloaded
  dflash-chat models pull z-lab/Qwen3.8-27B-DFlash2-GGUF:Q8_0

HF_ENDPOINT, HF_HOME, HF_TOKEN, HTTPS_PROXY and the files already in the Hub cache are used as by other programs.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = TEXT, EXAMPLES
    commands = parser.add_subparsers(dest="models_command", metavar="COMMAND", title="commands", required=True)

    def command(name: str, help: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.")
        added.add_argument("--json", action="store_true", help="print one JSON object instead")
        added.add_argument("--debug", action="store_true", help="show where an error came from")
        return added

    command("list", "list the models and drafters on this disk, and which fit together")
    find = command("find", "find drafters for a model on the Hub, or search it for words")
    find.add_argument("words", nargs="*", metavar="WORD", help="search for these instead")
    find.add_argument("--target", metavar="FILE", help="the model to find drafters for (default: the embedded one)")
    find.add_argument("--in", dest="places", metavar="OWNER/NAME", action="append", default=[], help="look only there")
    find.add_argument("--mode", choices=("dflash", "dflash2"), help="drafters of this method only")
    info = command("info", "say what a file, or a repository on the Hub, holds")
    info.add_argument(
        "what", metavar="FILE|OWNER/NAME", help="with :QUANTISATION or /FILE for one file of a repository"
    )
    info.add_argument("--target", metavar="FILE", help="say whether the drafter fits this model")
    pull = command("pull", "download a model or drafter; the same command goes on with a download that broke off")
    pull.add_argument("what", metavar="OWNER/NAME", help="with :QUANTISATION or /FILE where there are several")
    pull.add_argument("--target", metavar="FILE", help="download only what fits this model")
    add = command("import", "add a GGUF file that is on this disk (it stays there), or convert a drafter's folder")
    add.add_argument("path", metavar="FILE|FOLDER")
    add.add_argument("--target", metavar="FILE", help="the model of a drafter that is to be converted")
    add.add_argument("--type", metavar="TYPE", help="what to keep the matrices of a converted drafter in")
    remove = command("remove", "take a model away; an imported file itself stays")
    remove.add_argument("what", metavar="FILE|OWNER/NAME", help="as `models list` shows it")
    verify = command("verify", "read files again and hold them against their SHA-256")
    verify.add_argument("what", nargs="*", metavar="FILE|OWNER/NAME", help="(default: everything)")
    token = command("token", "keep a token for gated and private repositories (read from stdin), or forget it")
    token.add_argument("--forget", action="store_true")


def run(given: argparse.Namespace) -> int:
    """The exit status. Raises DFlashChatError."""
    return {
        "list": _list,
        "find": _find,
        "info": _info,
        "pull": _pull,
        "import": _import,
        "remove": _remove,
        "verify": _verify,
        "token": _token,
    }[given.models_command](given)


# --- on this disk -----------------------------------------------------------------------------------------------------


def _list(given: argparse.Namespace) -> int:
    from engine.catalog import header_of
    from engine.hub_cache import cache_folder
    from engine.library import targets_for

    models = _models()
    fits = {m.path: [t.path for t in targets_for(header_of(m.path), models)] for m in models if m.mode is not None}
    if given.json:
        print(
            json.dumps({"models": [_local_json(model, fits.get(model.path)) for model in models]}, ensure_ascii=False)
        )
        return 0
    names = {model.path: model.name for model in models}
    rows = []
    for model in models:
        if model.mode is not None:
            fitting = ", ".join(names[path] for path in fits[model.path]) or "nothing here"
        else:
            count = sum(model.path in paths for paths in fits.values())
            fitting = ("1 drafter" if count == 1 else f"{count} drafters") if model.is_target else ""
        rows.append((
            model.name, _what(model), model.quantisation or "", size_of(model.bytes), count_text(model.context_length),
            model.licence or "", model.origin.value, fitting,
        ))  # fmt: skip
    print_table(("name", "is", "type", "size", "context", "licence", "came", "fits"), rows)
    for model in models:
        if model.problem:
            say(model.problem)
    say(f"Downloads are in {cache_folder()}.")
    return 0


def _models() -> list[LocalModel]:
    """With the model that comes with the program, as it is shipped."""
    from engine.embedded import packaged_model
    from engine.errors import DFlashChatError
    from engine.library import local_models, packaged

    models = local_models()
    with contextlib.suppress(DFlashChatError):
        models.insert(0, packaged(packaged_model()))
    return models


def _what(model: LocalModel) -> str:
    if model.kind is None:
        return "damaged"
    return "chat model" if model.is_target else model.kind.value.removeprefix("a ")


def _local_json(model: LocalModel, fits: list[str] | None) -> dict[str, Any]:
    told = asdict(model)
    told["origin"] = model.origin.value
    told["kind"] = model.kind.name.lower() if model.kind is not None else None
    told["mode"] = model.mode.value if model.mode is not None else None
    return told if fits is None else told | {"fits": fits}


def _import(given: argparse.Namespace) -> int:
    from engine.library import import_model

    path = Path(given.path)
    if path.is_dir():
        path = _convert(path, given)
        model = import_model(path)
    else:
        model = import_model(path)
    if given.json:
        print(json.dumps(_local_json(model, None), ensure_ascii=False))
    else:
        print(f"{model.path} is now in the list: {_what(model)}, {model.quantisation}, {size_of(model.bytes)}.")
        if model.problem:
            print(model.problem)
    return 0


def _convert(folder: Path, given: argparse.Namespace) -> Path:
    """A drafter's folder, converted into the user's own folder of drafters."""
    from engine.catalog import user_drafter_folder
    from engine.convert import convert
    from engine.errors import SettingsError

    if given.target is None:
        raise SettingsError("A drafter's folder is converted for its model: give that with --target FILE.")
    kept = user_drafter_folder() / f"{folder.resolve().name}.gguf"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with ProgressLine() as shown:
        result = convert(
            str(folder), given.target, str(kept), type=given.type.upper() if given.type else None,
            on_progress=lambda fraction: shown(f"converting: {100 * fraction:.0f} %"),
        )  # fmt: skip
    for note in result.notes:
        say(note)
    return Path(result.path)


def _remove(given: argparse.Namespace) -> int:
    from engine.errors import SettingsError
    from engine.library import remove_model

    found = _named(given.what)
    if len(found) > 1 and any((model.repository or "").lower() != given.what.lower() for model in found):
        raise SettingsError(_which_of(given.what, found))
    freed = 0
    for model in found:
        freed += remove_model(model)
        say(f"{model.name} ({model.path}) is no longer in the list.")
    if given.json:
        print(json.dumps({"removed": [model.path for model in found], "freed_bytes": freed}, ensure_ascii=False))
    else:
        print(f"{size_of(freed)} have become free.")
    return 0


def _which_of(name: str, models: Sequence[LocalModel]) -> str:
    paths = ", ".join(model.path for model in models)
    return f"Several models are called {name}; say which by its path: {paths}."


def _verify(given: argparse.Namespace) -> int:
    from engine.library import verify_model

    models = [model for what in given.what for model in _named(what)] if given.what else _models()
    checks: list[Check] = []
    with _cancel_on_ctrl_c() as cancel, ProgressLine() as shown:
        for model in models:
            checks += verify_model(model, _reading(shown, model), cancel)
    if given.json:
        print(json.dumps({"files": [asdict(check) for check in checks]}, ensure_ascii=False))
    else:
        for check in checks:
            print(f"{'good' if check.good else 'BAD '}  {check.sentence}")
    return 0 if all(check.good for check in checks) else FAILED_CHECK


def _reading(shown: ProgressLine, model: LocalModel) -> Callable[[int], None]:
    return lambda done: shown(f"reading {model.name}: {size_of(done)} of {size_of(model.bytes)}")


def _named(what: str) -> list[LocalModel]:
    """The models on this disk that a user means: by path, by name, or by repository. Raises ModelFileError."""
    from engine.errors import ModelFileError

    models, path = _models(), Path(what)
    found = [model for model in models if path.exists() and Path(model.path).exists() and path.samefile(model.path)]
    found = found or [m for m in models if what in (m.name, Path(m.path).name)] or [
        m for m in models if m.repository is not None and m.repository.lower() == what.lower()
    ]  # fmt: skip
    if not found:
        raise ModelFileError(f"There is no model {what!r} on the list; 'dflash-chat models list' shows what there is.")
    return found


# --- on the Hub -------------------------------------------------------------------------------------------------------


def _find(given: argparse.Namespace) -> int:
    from engine.hub import Hub

    hub = Hub()
    if given.words:
        return _search(hub, " ".join(given.words), given.json)
    from engine.events import Mode
    from engine.finding import find_drafters

    target = _target(given.target)
    offers: list[Offer] = []
    mode = Mode(given.mode) if given.mode else None
    with _cancel_on_ctrl_c() as cancel, ProgressLine() as shown:
        for offer in find_drafters(hub, target, given=given.places, mode=mode, on_look=look_line(shown), cancel=cancel):
            offers.append(offer)
    offers.sort(key=lambda offer: not offer.verdict.fits)
    if given.json:
        print(
            json.dumps({"target": target.path, "drafters": [offer_json(offer) for offer in offers]}, ensure_ascii=False)
        )
    elif offers:
        print_table(
            ("fits", "method", "type", "size", "licence", "repository", "file"),
            [(
                "yes" if offer.verdict.fits else "no", method_of(offer), offer.quantisation, size_of(offer.model.size),
                offer.licence or "", offer.repository.id, offer.model.name + (" (on this disk)" if offer.path else ""),
            ) for offer in offers],
        )  # fmt: skip
        for offer in offers:
            print(f"\n{offer.repository.id}/{offer.model.files[0].name}\n  {offer.verdict.sentence}")
            if offer.others:
                others = ", ".join(f"{m.quantisation or m.name} ({size_of(m.size)})" for m in offer.others)
                print(f"  Also as {others}.")
        best = next((offer for offer in offers if offer.verdict.fits), None)
        if best is not None:
            print(f"\nGet it: dflash-chat models pull {best.repository.id}/{best.model.files[0].name}")
    else:
        print(f"No drafter for {target.name} was found on {hub.host}.")
    return 0 if any(offer.verdict.fits for offer in offers) else FAILED_CHECK


def _search(hub: Hub, words: str, as_json: bool) -> int:
    found = hub.search(words)
    if as_json:
        print(json.dumps({"repositories": [repository_json(repository) for repository in found]}, ensure_ascii=False))
    elif found:
        rows = [
            (
                found_one.id,
                found_one.architecture or "",
                count_text(found_one.parameters),
                count_text(found_one.context_length),
                found_one.licence or "",
                access_of(found_one),
            )
            for found_one in found
        ]
        print_table(("repository", "architecture", "parameters", "context", "licence", "access"), rows)
    else:
        print(f"Nothing on {hub.host} has a name with {words!r}.")
    return 0 if found else FAILED_CHECK


def _info(given: argparse.Namespace) -> int:
    from engine.catalog import header_of
    from engine.inspection import inspect

    if Path(given.what).exists():
        found = inspect(given.what, [given.target] if given.target else [])
        memory = _memory(header_of(given.what)) if found.usable else {}
        if given.json:
            print(json.dumps(found.as_dict() | ({"memory": memory} if memory else {}), ensure_ascii=False))
        else:
            print("\n".join([*found.lines(), *([memory["sentence"]] if memory else [])]))
        return 0 if found.usable else FAILED_CHECK
    from engine.finding import verdict
    from engine.hub import Hub
    from engine.inspection import fact_lines, facts_of
    from engine.remote_model import choose, parse_repository

    hub = Hub()
    name, wanted = parse_repository(given.what)
    repository = hub.repository(name)
    models = choose(repository.models, wanted)
    if len(models) != 1:
        _tell_repository(hub, repository, models, given.json)
        return 0 if models else FAILED_CHECK
    with _cancel_on_ctrl_c() as cancel, ProgressLine() as shown:
        header = hub.header(models[0], lambda count: shown(f"reading the header: {size_of(count)}"), cancel)
    facts = facts_of(header)
    judged = verdict(header, _target(given.target)) if given.target else None
    memory = _memory(header)
    if given.json:
        told = model_json(models[0]) | {"facts": {key.replace(" ", "_"): value for key, value in facts.items()}}
        told |= {} if judged is None else {"fits": judged.fits, "reasons": judged.reasons, "sentence": judged.sentence}
        told |= {"memory": memory} if memory else {}
        print(json.dumps(told, ensure_ascii=False))
    else:
        print(f"{models[0].repository}/{models[0].files[0].name}, {size_of(models[0].size)}")
        print("\n".join(fact_lines(facts)))
        if memory:
            print(memory["sentence"])
        if judged is not None:
            print(judged.sentence)
    return 0 if judged is None or judged.fits else FAILED_CHECK


def _memory(header: Header) -> dict[str, Any]:
    """What a chat model would take with the usual settings, in bytes, against what is free; nothing for a drafter."""
    from engine.events import LoadSettings
    from engine.fit import is_judged, judge

    if not is_judged(header):
        return {}
    fit = judge(header, LoadSettings())
    told = {"needed": fit.needed, "free": fit.free, "context": fit.context, "verdict": fit.verdict.value}
    return told | {"sentence": fit.sentence}


def _tell_repository(hub: Hub, repository: Repository, models: Sequence[RemoteModel], as_json: bool) -> None:
    if as_json:
        told = repository_json(repository) | {"models": [model_json(model) for model in models]}
        print(json.dumps(told | {"left_out": repository.left_out}, ensure_ascii=False))
        return
    facts = [repository.licence or "no licence named", *filter(None, [access_of(repository)])]
    print(f"{repository.url}  ({', '.join(facts)})")
    rows = [
        (
            model.name,
            model.quantisation,
            size_of(model.size),
            str(len(model.files)),
            on_disk(hub, model) or model.problem or "",
        )
        for model in models
    ]
    print_table(("file", "type", "size", "parts", ""), rows)
    for sentence in repository.left_out:
        say(sentence)
    if repository.safetensors_drafter:
        say("It holds weights that can be converted: download them, then 'dflash-chat models import FOLDER'.")


def _pull(given: argparse.Namespace) -> int:
    from engine.downloads import DownloadQueue, State
    from engine.errors import HubError
    from engine.finding import check
    from engine.hub import Hub
    from engine.remote_model import choose, parse_repository

    hub = Hub()
    name, wanted = parse_repository(given.what)
    models = choose(hub.repository(name).models, wanted)
    if len(models) != 1:
        raise HubError(_which(name, wanted, models))
    model = models[0]
    with _cancel_on_ctrl_c() as cancel, ProgressLine() as shown:
        if given.target:
            judged = check(hub, model, _target(given.target), look_line(shown), cancel)
            if not judged.fits:
                shown("")
                print(judged.sentence)
                return FAILED_CHECK
        queue = DownloadQueue(hub)
        queue.subscribe(lambda download: shown(download_line(download)))
        try:
            id = queue.add(model)
            while (now := queue.wait(id, 0.2)) is not None and now.state.active and not cancel.is_set():
                pass
        finally:
            queue.close()
    now = queue.get(id)
    if now is None or now.state is State.WAITING:
        say("Stopped; the same command goes on from here.")
        return 130
    if now.state is not State.DONE:
        raise HubError(now.sentence or "The download stopped.", now.error_kind or "answer", now.link)
    if given.json:
        print(json.dumps(model_json(model) | {"path": now.path}, ensure_ascii=False))
    else:
        print(now.path)
    return 0


def _which(name: str, wanted: str | None, models: Sequence[RemoteModel]) -> str:
    if not models:
        meant = f" that {wanted!r} means" if wanted else ""
        return f"{name} holds no GGUF file{meant}; 'dflash-chat models info {name}' shows what it holds."
    from engine.finding import preference

    models = sorted(models, key=lambda model: (preference(model), model.size))
    several = ", ".join(f"{model.quantisation or model.name} ({size_of(model.size)})" for model in models)
    return f"{name} holds several: {several}; say which, as {name}:{models[0].quantisation or 'FILE'}."


def _token(given: argparse.Namespace) -> int:
    from engine.hub_connection import endpoint_of
    from engine.hub_token import TokenStore

    tokens = TokenStore(endpoint_of())
    if given.forget:
        tokens.forget()
        place = tokens.place
    else:
        typed = getpass.getpass("Token (it is not shown): ") if sys.stdin.isatty() else sys.stdin.read()
        place = tokens.keep(typed)
    if given.json:
        print(json.dumps({"kept_in": place}))
    else:
        print(f"The token is in {place}." if place else "There is no token any more.")
    return 0


def _target(path: str | None) -> Header:
    from engine.catalog import header_of, require_target
    from engine.embedded import packaged_model

    header = header_of(path or packaged_model())
    require_target(header)
    return header


@contextlib.contextmanager
def _cancel_on_ctrl_c() -> Iterator[threading.Event]:
    """The first Ctrl-C sets the event, so that what was fetched is put away well."""
    from engine.commands import _ctrl_c_sets

    with _ctrl_c_sets() as cancel:
        yield cancel
