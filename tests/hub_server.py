"""A Hub to test against: a real HTTP server with the endpoints that the program uses, and the ways in which one fails.

It speaks as the public Hub does to huggingface-hub: search, repository facts with every file's size and SHA-256, and
`resolve`, which sends large files to a second host with a redirect that names the content. That second host serves
ranges with ETag and If-Range. On demand it cuts connections, pauses, ignores ranges, changes a file, or answers with a
status. It knows nothing of the engine.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

CHUNK = 64 << 10
TOKEN = "hf_a-good-token"  # that may read what is private or gated


@dataclass
class HubFile:
    """A file's content, from memory or from the disk. `lfs`: large, and so on the second host."""

    content: bytes | Path
    lfs: bool = True
    claims: int | None = None  # a size that it has not
    rename: str | None = None  # what the Hub says it is called
    served: bytes | None = None  # what the second host sends instead, without the Hub knowing

    @property
    def size(self) -> int:
        return self.content.stat().st_size if isinstance(self.content, Path) else len(self.content)

    @cached_property
    def sha256(self) -> str:
        digest = hashlib.sha256()
        for piece in self.pieces(0, self.size):
            digest.update(piece)
        return digest.hexdigest()

    @cached_property
    def git(self) -> str:
        digest = hashlib.sha1(b"blob %d\0" % self.size)
        for piece in self.pieces(0, self.size):
            digest.update(piece)
        return digest.hexdigest()

    def pieces(self, start: int, end: int) -> Iterator[bytes]:
        if isinstance(self.content, bytes):
            for at in range(start, end, CHUNK):
                yield self.content[at : min(at + CHUNK, end)]
            return
        with open(self.content, "rb") as file:
            file.seek(start)
            while start < end:
                piece = file.read(min(CHUNK, end - start))
                start += len(piece)
                yield piece


@dataclass
class HubRepository:
    files: dict[str, HubFile]
    gated: bool = False
    private: bool = False
    licence: str = "mit"
    downloads: int = 0
    base_model: str | None = None
    gguf: dict[str, Any] | None = None
    commit: str = "a" * 40


@dataclass
class Seen:
    """A request as it came, and how many bytes of a content went out for it."""

    host: str  # "hub" or "second"
    method: str
    path: str
    headers: dict[str, str]
    sent: int = 0


@dataclass
class Trouble:
    """What goes wrong. The lists are used up from the front, one entry for each answer with a content."""

    cuts: list[int] = field(default_factory=list)  # close the connection after so many bytes
    pauses: list[int] = field(default_factory=list)  # after so many bytes set `paused` and wait for `go_on`
    statuses: list[int] = field(default_factory=list)  # answer with this, 0 for well
    api_statuses: list[int] = field(default_factory=list)  # the same for search and repository facts
    ignore_ranges: bool = False
    no_etag: bool = False
    wrong_range: bool = False
    extra: bytes = b""  # behind the content
    retry_after: str | None = None


class HubServer:
    """`with HubServer() as hub: hub.add("owner/name", {"x.gguf": data})`; its address is `hub.url`."""

    def __init__(self) -> None:
        self.repositories: dict[str, HubRepository] = {}
        self.tokens = {TOKEN}
        self.trouble = Trouble()
        self.seen: list[Seen] = []
        self.paused = threading.Event()
        self.go_on = threading.Event()
        self.lock = threading.Lock()
        self._servers: list[_Server] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> HubServer:
        for host in ("hub", "second"):
            server = _Server(("127.0.0.1", 0), _Handler)
            server.hub, server.host = self, host
            thread = threading.Thread(target=server.serve_forever, args=(0.02,), name=f"hub server {host}")
            thread.start()
            self._servers.append(server)
            self._threads.append(thread)
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on.set()
        for server in self._servers:
            server.shutdown()
            server.hang_up()
            server.server_close()  # waits for the threads of its connections
        for thread in self._threads:
            thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._servers[0].server_port}"

    @property
    def second_url(self) -> str:
        return f"http://127.0.0.1:{self._servers[1].server_port}"

    def add(self, id: str, files: Mapping[str, bytes | Path | HubFile], **facts: Any) -> HubRepository:
        given = {name: file if isinstance(file, HubFile) else HubFile(file) for name, file in files.items()}
        self.repositories[id] = HubRepository(given, **facts)
        return self.repositories[id]

    def content_bytes(self) -> int:
        """Bytes of contents that went out in all."""
        return sum(seen.sent for seen in self.seen)

    def requests(self, beginning: str = "", host: str | None = None) -> list[Seen]:
        return [seen for seen in self.seen if seen.path.startswith(beginning) and host in (None, seen.host)]


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 64
    hub: HubServer
    host: str

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        for connection in tuple(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no fault here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        # little on the way, so that what was sent and what arrived are about the same
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, CHUNK)

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        hub, address = self.server.hub, urlsplit(self.path)
        self.note = Seen(
            self.server.host, self.command, unquote(self.path), {k.lower(): v for k, v in self.headers.items()}
        )
        with hub.lock:
            hub.seen.append(self.note)
        path = unquote(address.path)
        if self.server.host == "second":
            self.content(next(f for r in hub.repositories.values() for f in r.files.values() if path == f"/{f.sha256}"))
            return
        facts = re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/([^/]+)|/(tree)/([^/]+))?", path)
        resolved = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        if path == "/api/models":
            if not self.api_trouble():
                self.json([self.facts(id, False) for id in self.found(parse_qs(address.query))])
        elif facts:
            repository = hub.repositories.get(facts[1])
            if self.api_trouble() or not self.allowed(repository, facts_only=True):
                return
            self.json(self.tree(facts[1]) if facts[3] else self.facts(facts[1], "blobs" in parse_qs(address.query)))
        elif resolved:
            self.resolve(resolved[1], resolved[2], resolved[3])
        else:
            self.refuse(404)

    # --- the Hub

    def found(self, query: dict[str, list[str]]) -> list[str]:
        text = query.get("search", [""])[0].lower()
        repositories = self.server.hub.repositories
        found = [
            id for id, repository in repositories.items()
            if text in id.lower() and not repository.private
        ]  # fmt: skip
        found.sort(key=lambda id: -repositories[id].downloads)
        return found[: int(query.get("limit", ["1000"])[0])]

    def facts(self, id: str, blobs: bool) -> dict[str, Any]:
        repository = self.server.hub.repositories[id]
        card = {"license": repository.licence} | (
            {"base_model": repository.base_model} if repository.base_model else {}
        )
        told: dict[str, Any] = {
            "_id": "0", "id": id, "modelId": id, "sha": repository.commit, "private": repository.private,
            "gated": "auto" if repository.gated else False, "downloads": repository.downloads, "cardData": card,
            "tags": ["gguf", f"license:{repository.licence}"], "gguf": repository.gguf,
        }  # fmt: skip
        told["siblings"] = [
            {"rfilename": file.rename or name} | (self.blob(file) if blobs else {})
            for name, file in repository.files.items()
        ]
        return told

    def blob(self, file: HubFile) -> dict[str, Any]:
        size = file.size if file.claims is None else file.claims
        told: dict[str, Any] = {"size": size, "blobId": file.git}
        return told | ({"lfs": {"sha256": file.sha256, "size": size, "pointerSize": 130}} if file.lfs else {})

    def tree(self, id: str) -> list[dict[str, Any]]:
        files = self.server.hub.repositories[id].files.items()
        return [{"type": "file", "path": name, "size": file.size, "oid": file.git} for name, file in files]

    def allowed(self, repository: HubRepository | None, facts_only: bool = False) -> bool:
        """As the Hub answers: to a stranger, what is not there and what is private look the same."""
        token = self.headers.get("authorization", "").removeprefix("Bearer ")
        known = token in self.server.hub.tokens
        if token and not known:
            self.refuse(401, message="Invalid credentials in Authorization header")
        elif repository is None or (repository.private and not known):
            self.refuse(404 if token else 401, "RepoNotFound" if token else "", "Repository not found")
        elif repository.gated and not facts_only and not known:
            self.refuse(403 if token else 401, "GatedRepo", "Access to this model is restricted.")
        else:
            return True
        return False

    def resolve(self, id: str, revision: str, name: str) -> None:
        repository = self.server.hub.repositories.get(id)
        if not self.allowed(repository):
            return
        assert repository is not None
        file = repository.files.get(name)
        if revision not in ("main", repository.commit):
            self.refuse(404, "RevisionNotFound", "Invalid rev id")
        elif file is None:
            self.refuse(404, "EntryNotFound", "Entry not found")
        elif not file.lfs:
            self.content(file)
        else:
            self.send_response(302)
            self.send_header("Location", f"{self.server.hub.second_url}/{file.sha256}?name={quote(name)}")
            self.send_header("X-Repo-Commit", repository.commit)
            self.send_header("X-Linked-Size", str(file.size if file.claims is None else file.claims))
            self.send_header("X-Linked-Etag", f'"{file.sha256}"')
            self.send_header("ETag", f'"{file.git}"')
            self.send_header("Content-Length", "0")
            self.end_headers()

    def api_trouble(self) -> bool:
        statuses = self.server.hub.trouble.api_statuses
        status = statuses.pop(0) if statuses else 0
        if status:
            self.refuse(status)
        return bool(status)

    # --- contents

    def content(self, file: HubFile) -> None:
        """The whole of a file or a range of it, with what is wrong today."""
        hub, file = self.server.hub, file if file.served is None else HubFile(file.served)
        trouble, etag = hub.trouble, f'"{file.sha256[:32]}"'
        with hub.lock:
            status, cut, pause = (
                numbers.pop(0) if numbers else None for numbers in (trouble.statuses, trouble.cuts, trouble.pauses)
            )
        if status:
            self.refuse(status)
            return
        start, end, size = 0, file.size, file.size
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("range", ""))
        same = self.headers.get("if-range") in (None, etag)
        partial = bool(asked) and same and not trouble.ignore_ranges
        if partial:
            assert asked is not None
            start = int(asked[1])
            end = min(int(asked[2]) + 1, size) if asked[2] else size
            if start >= size:
                self.refuse(416)
                return
        self.send_response(206 if partial else 200)
        self.send_header("Content-Length", str(end - start + len(trouble.extra)))
        if partial:
            shift = 1 if trouble.wrong_range else 0
            self.send_header("Content-Range", f"bytes {start + shift}-{end - 1}/{size}")
        if not trouble.no_etag:
            self.send_header("ETag", etag)
        self.send_header("Content-Type", "binary/octet-stream")
        self.end_headers()
        if self.command == "HEAD":
            return
        for piece in file.pieces(start, end):
            if pause is not None and self.note.sent + len(piece) > pause:
                head = pause - self.note.sent
                self.put(piece[:head])
                piece = piece[head:]
                pause = None
                hub.paused.set()
                hub.go_on.wait(30)
            if cut is not None and self.note.sent + len(piece) >= cut:
                self.put(piece[: cut - self.note.sent])
                self.close_connection = True
                return
            self.put(piece)
        self.put(trouble.extra)

    def put(self, piece: bytes) -> None:
        self.wfile.write(piece)
        self.note.sent += len(piece)

    def json(self, told: Any) -> None:
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status: int, code: str = "", message: str = "") -> None:
        body = json.dumps({"error": message or f"status {status}"}).encode()
        self.send_response(status)
        for name, value in (
            ("X-Error-Code", code),
            ("X-Error-Message", message),
            ("Retry-After", self.server.hub.trouble.retry_after if status in (429, 503) else None),
            ("Content-Range", "bytes */0" if status == 416 else None),
        ):
            if value:
                self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
