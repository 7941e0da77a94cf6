"""A Hub: search it, look into its repositories, read headers and files from it.

Search, repository facts and addresses come through huggingface-hub, the rules of the connection from
`engine/hub_connection.py`. HF_ENDPOINT points all of it elsewhere. Every failure is a `HubError` with one sentence. It
knows what files are called and where they lie, and nothing of what is in them.

Importing this takes half a second, for huggingface-hub: do it in the background, or where it is needed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from engine import hub_connection as connection  # first: it sets the library up
from engine.errors import HubError, ModelFileError
from engine.gguf_file import Header, read_header
from engine.hub_cache import HubCache
from engine.hub_token import TokenStore
from engine.remote_header import OnBytes, read_remote_header
from engine.remote_model import RemoteFile, RemoteModel, Repository, is_repository, models_of, refused_name
from engine.split_model import join_parts

from huggingface_hub import HfApi, hf_hub_url  # isort: skip
from huggingface_hub.errors import HFValidationError  # isort: skip

if TYPE_CHECKING:
    import httpx2

_FACTS = ["cardData", "downloads", "gated", "gguf", "private", "tags"]


class Hub:
    """May be used from several threads."""

    def __init__(
        self, endpoint: str | None = None, cache: str | Path | None = None, tokens: TokenStore | None = None
    ) -> None:
        """`endpoint` defaults to HF_ENDPOINT or the public Hub, `cache` to the user's Hub cache. Raises HubError."""
        self.endpoint = connection.endpoint_of(endpoint)
        self.cache = HubCache(cache)
        self.tokens = tokens or TokenStore(self.endpoint)
        connection.connect(self.endpoint)
        self._api = HfApi(endpoint=self.endpoint, token=False)

    @property
    def host(self) -> str:
        return urlsplit(self.endpoint).netloc

    def page(self, repository: str) -> str:
        return f"{self.endpoint}/{repository}"

    # --- what there is

    def search(self, text: str, *, limit: int = 30, gguf_only: bool = True) -> tuple[Repository, ...]:
        """Repositories whose names hold all the words, the most downloaded first. Raises HubError.

        A Hub looks for the text as it stands, and names have no blanks: so the words are also tried joined, and the
        longest alone.
        """
        words = text.lower().split()
        tries = dict.fromkeys(["-".join(text.split()), max(words, key=len, default="")])
        for wanted in tries:
            found = self._search(wanted, limit if wanted == next(iter(tries)) else 4 * limit, gguf_only)
            fitting = tuple(repository for repository in found if all(word in repository.id.lower() for word in words))
            if fitting:
                return fitting[:limit]
        return ()

    def _search(self, text: str, limit: int, gguf_only: bool) -> list[Repository]:
        with self._asked():
            found = self._api.list_models(
                search=text or None,
                filter="gguf" if gguf_only else None,
                sort="downloads",
                limit=limit,
                expand=_FACTS,  # type: ignore[arg-type]
                token=self.tokens.token() or False,
            )
            return [self._repository(info, (), ()) for info in found if is_repository(str(info.id))]

    def repository(self, name: str, revision: str | None = None) -> Repository:
        """A repository with its files and models, all at one commit. Raises HubError."""
        with self._asked():
            if not is_repository(name):
                raise HFValidationError(name)
            info = self._api.model_info(
                name, revision=revision, files_metadata=True, token=self.tokens.token() or False
            )
            if not is_repository(str(info.id)):
                raise ValueError(info.id)
            return self._repository(info, *_files(info))

    def header(
        self, model: RemoteModel, on_bytes: OnBytes | None = None, cancel: threading.Event | None = None
    ) -> Header:
        """The header of a model, from the cache where it is there, else over the network, as little as possible.

        `on_bytes` hears how many bytes have been fetched. Raises HubError, ModelFileError, Cancelled.
        """
        paths = [self.cache.find(file) for file in model.files]
        if paths[0] is not None and None not in paths:
            return read_header(paths[0])
        if model.problem is not None:
            raise ModelFileError(model.problem)
        headers: list[Header] = []
        before = fetched = 0

        def tell(count: int) -> None:
            nonlocal fetched
            fetched = before + count
            if on_bytes is not None:
                on_bytes(fetched)

        for file in model.files:  # the later parts of a split model have short headers
            headers.append(read_remote_header(self, file, tell, cancel))
            before = fetched
        return headers[0] if headers[0].parts == 1 else join_parts(headers)

    # --- bytes

    def open(
        self, file: RemoteFile, start: int, end: int | None = None, validator: str | None = None
    ) -> AbstractContextManager[httpx2.Response]:
        """The bytes of a file from `start` up to `end` (without it: to the last), asked for as a range.

        The answer is 206 with the range, or 200 with the whole file, where the server ignores ranges or the file is no
        longer the one of `validator` (an ETag); or 416, where there are no such bytes. Read it inside `reading()`.
        """
        url = hf_hub_url(file.repository, file.name, revision=file.commit, endpoint=self.endpoint)
        headers = {"range": f"bytes={start}-{'' if end is None else end - 1}", "accept-encoding": "identity"}
        if validator:
            headers["if-range"] = validator
        token = self.tokens.token()
        if token:
            headers["authorization"] = f"Bearer {token}"
        return connection.get(url, headers)

    def reading(self) -> AbstractContextManager[None]:
        return connection.reading(self.host)

    # --- the library's answers in our terms

    @contextmanager
    def _asked(self) -> Iterator[None]:
        try:
            yield
        except HubError:
            raise
        except HFValidationError as error:
            raise HubError("That is no name of a repository; give it as owner/name.", connection.NOT_FOUND) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:  # an answer that is none of a Hub
            raise HubError(
                f"{self.host} does not answer as a Hub does; check HF_ENDPOINT and the connection.", connection.ANSWER
            ) from error

    def _repository(self, info: Any, files: tuple[RemoteFile, ...], left_out: tuple[str, ...]) -> Repository:
        card = info.card_data.to_dict() if info.card_data is not None else {}
        tags = [tag for tag in info.tags or () if isinstance(tag, str)]
        gguf = info.gguf if isinstance(info.gguf, dict) else {}
        bases = card.get("base_model") or []
        return Repository(
            id=str(info.id),
            url=self.page(str(info.id)),
            gated=bool(info.gated),
            private=bool(info.private),
            licence=_text(card.get("license")) or _tagged(tags, "license:"),
            downloads=info.downloads if isinstance(info.downloads, int) else None,
            base_models=tuple(str(base) for base in ([bases] if isinstance(bases, str) else bases)),
            architecture=_text(gguf.get("architecture")),
            context_length=gguf.get("context_length") if isinstance(gguf.get("context_length"), int) else None,
            parameters=gguf.get("total") if isinstance(gguf.get("total"), int) else None,
            commit=_text(info.sha),
            files=files,
            models=models_of(files),
            left_out=left_out,
        )


def _files(info: Any) -> tuple[tuple[RemoteFile, ...], tuple[str, ...]]:
    """The files that can be downloaded, and a sentence for each that is refused."""
    files: list[RemoteFile] = []
    left_out: list[str] = []
    for sibling in info.siblings or () if info.sha else ():
        name = str(sibling.rfilename)
        refused = refused_name(name)
        if refused is not None:
            left_out.append(refused)
            continue
        sha256 = _text(sibling.lfs.sha256) if sibling.lfs else None
        size, blob = sibling.lfs.size if sibling.lfs else sibling.size, sha256 or _text(sibling.blob_id)
        if not isinstance(size, int) or isinstance(size, bool) or size < 0 or not blob:
            left_out.append(f"The Hub does not say how large {name} is and what it holds, so it cannot be checked.")
            continue
        files.append(RemoteFile(str(info.id), name, size, str(info.sha), blob, sha256))
    return tuple(files), tuple(left_out)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _tagged(tags: Iterable[str], beginning: str) -> str | None:
    return next((tag.removeprefix(beginning) for tag in tags if tag.startswith(beginning)), None)
