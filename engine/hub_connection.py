"""The HTTP connection to a Hub: huggingface-hub's own client, with the rules of this program on every request.

The token goes to the endpoint's own host and nowhere else, whoever sends the request and wherever it is redirected to.
What fails becomes a `HubError` with one sentence, at once: the program decides when to try again, not the library. It
knows nothing of models and files.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read at import: nothing about this machine is sent

import httpx2
from huggingface_hub import constants, get_session, set_client_factory

from engine.errors import HubError

CONNECT_S = 10.0
READ_S = 30.0  # without a byte, after which a connection counts as broken
USER_AGENT = "dflash-chat"

# Kinds of HubError. Those in TEMPORARY are worth another try by themselves.
OFFLINE, TIMEOUT, PROXY, CERTIFICATE, BROKEN = "offline", "timeout", "proxy", "certificate", "broken"
NOT_FOUND, GATED, TOKEN, FORBIDDEN, BUSY, SERVER, ANSWER = (
    "not found", "gated", "token", "forbidden", "busy", "server", "answer",
)  # fmt: skip
TEMPORARY = frozenset({OFFLINE, TIMEOUT, BROKEN, BUSY, SERVER})

_REPOSITORY = re.compile(r"^(?:/api/models/([^/]+/[^/]+)|/([^/]+/[^/]+)/resolve/[^/]+/(.+)$)")
_PORTS = {"http": 80, "https": 443}

_endpoints: set[tuple[str, str, int]] = set()  # origins that a token may go to
_installing = threading.Lock()
_installed = False

# Their logs hold the addresses that a Hub signs for one user: whoever reads such a one may fetch what is private.
for _library in ("httpx2", "httpcore2"):
    logging.getLogger(_library).setLevel(logging.WARNING)


def endpoint_of(given: str | None = None) -> str:
    """The Hub to talk to: the given one, else HF_ENDPOINT, else the public one; without a slash at its end."""
    endpoint = (given or os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).strip().rstrip("/")
    if "@" in endpoint:  # sentences and links name the endpoint
        raise HubError(
            "HF_ENDPOINT is an address with a user's name or password in it; give it without, and a token instead."
        )
    try:
        scheme, host, _port = origin(endpoint)
    except ValueError:
        scheme = host = ""
    if scheme not in _PORTS or not host:
        raise HubError(
            f"HF_ENDPOINT is {endpoint!r}, which is no web address; give one such as https://huggingface.co."
        )
    return endpoint


def connect(endpoint: str) -> None:
    """Prepare huggingface-hub's client for an endpoint."""
    global _installed
    with _installing:
        _endpoints.add(origin(endpoint))
        if not _installed:
            set_client_factory(_new_client)
            _installed = True


def origin(url: str) -> tuple[str, str, int]:
    """Raises ValueError for what is no address."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme, 0)


@contextmanager
def get(url: str, headers: dict[str, str]) -> Iterator[httpx2.Response]:
    """A GET whose body is read as it comes, redirects followed. Raises HubError for all answers from 400 on but 416.

    While the body is read, `reading()` turns a connection that breaks into a HubError as well.
    """
    with get_session().stream("GET", url, headers=headers) as response:
        yield response


@contextmanager
def reading(host: str) -> Iterator[None]:
    """Around reading a body: what breaks becomes a HubError."""
    try:
        yield
    except (httpx2.TransportError, httpx2.StreamError) as error:
        raise _broken(error, host) from error


class _Client(httpx2.Client):
    """httpx's client; every failure is a HubError."""

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = super().send(request, **options)
        except httpx2.TransportError as error:
            raise _broken(error, request.url.host) from error
        except (httpx2.TooManyRedirects, httpx2.InvalidURL, httpx2.DecodingError) as error:
            raise HubError(f"{request.url.host} gives no usable answer ({error}); try again later.", ANSWER) from error
        if response.status_code >= 400 and response.status_code != 416:
            with reading(request.url.host):
                response.close()
            raise _refusal(response)
        return response


def _new_client() -> httpx2.Client:
    return _Client(event_hooks={"request": [_before_sending]}, follow_redirects=True, timeout=None)


def _before_sending(request: httpx2.Request) -> None:
    """Called for every request, those of redirects too."""
    if constants.is_offline_mode():
        raise HubError("HF_HUB_OFFLINE is set, so the Hub is not asked; what is on disk works.", OFFLINE)
    if origin(str(request.url)) not in _endpoints:
        request.headers.pop("authorization", None)
    request.headers["user-agent"] = USER_AGENT
    # neither the client nor the library asks for a time limit
    limits = request.extensions.get("timeout") or {}
    request.extensions["timeout"] = {
        "connect": limits.get("connect") or CONNECT_S,
        "read": limits.get("read") or READ_S,
        "write": limits.get("write") or READ_S,
        "pool": limits.get("pool") or CONNECT_S,
    }


# --- what went wrong, in a sentence -----------------------------------------------------------------------------------


def _broken(error: Exception, host: str) -> HubError:
    text = str(error)
    if isinstance(error, httpx2.ProxyError):
        return HubError(
            f"The proxy does not let the program through to {host} ({text}); check HTTPS_PROXY and HTTP_PROXY.", PROXY
        )
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return HubError(
            f"The certificate of {host} cannot be verified; check the clock, or set SSL_CERT_FILE to your proxy's "
            "certificate.",
            CERTIFICATE,
        )
    proxy = urlsplit(getproxies().get("https") or getproxies().get("http") or "")
    if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout)) and proxy.hostname and not proxy_bypass(host):
        return HubError(
            f"{host} cannot be reached through the proxy {proxy.hostname} ({text}); check HTTPS_PROXY and HTTP_PROXY.",
            PROXY,
        )
    if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)):
        return HubError(f"You are offline: {host} cannot be reached; what is on disk works.", OFFLINE)
    if isinstance(error, httpx2.TimeoutException):
        return HubError(f"{host} has stopped answering; try again later.", TIMEOUT)
    return HubError(f"The connection to {host} broke; try again.", BROKEN)


def _refusal(response: httpx2.Response) -> HubError:
    """By status, and by the codes that a Hub puts into its headers."""
    asked = response.history[0].request if response.history else response.request
    root, host, status = _root(str(asked.url)), asked.url.host, response.status_code
    repository, file = _asked_for(asked.url.path)
    named, page = repository or str(asked.url), f"{root}/{repository}" if repository else None
    code, message = response.headers.get("x-error-code", ""), response.headers.get("x-error-message", "")

    def because(kind: str, sentence: str, link: str | None = page) -> HubError:
        return HubError(sentence, kind, link, _wait(response))

    if code == "GatedRepo":
        return because(
            GATED, f"{named} is gated: sign in at {page}, accept its conditions there, and give the program your token."
        )
    if code == "EntryNotFound" or (status in (404, 410) and file and not code):
        return because(
            NOT_FOUND, f"{named} has no file {file or 'of that name'} (any more); look at its list of files."
        )
    if code == "RevisionNotFound":
        return because(NOT_FOUND, f"{named} has no such version; leave the version out.")
    if "Invalid credentials" in message:
        return because(TOKEN, "The Hub does not accept your token; give a new one.", f"{root}/settings/tokens")
    if status in (401, 404, 410):
        token = "your token may not read it" if "authorization" in asked.headers else "it wants a token"
        return because(
            NOT_FOUND, f"The Hub does not show {named}: there is no such repository, or it is private and {token}."
        )
    if status == 403:
        said = f" ({message})" if message else ""
        return because(FORBIDDEN, f"The Hub refuses {named}{said}; look at its page, or give a token that may read it.")
    if status == 429:
        wait = _wait(response)
        when = f"in {wait:.0f} seconds" if wait else "later"
        return because(BUSY, f"The Hub has had too many requests from here; try again {when}, or give a token.", None)
    if status >= 500 or status == 408:
        return because(SERVER, f"{host} has a fault of its own ({status}); try again later.", None)
    return because(ANSWER, f"{host} does not answer as a Hub does ({status}); check HF_ENDPOINT.", None)


def _root(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _asked_for(path: str) -> tuple[str, str]:
    """Repository and file of a request's path, "" where it names none."""
    found = _REPOSITORY.match(path)
    if not found:
        return "", ""
    return found[1] or found[2], unquote(found[3] or "")


def _wait(response: httpx2.Response) -> float | None:
    """How long the Hub asks to wait, from Retry-After or its draft of RateLimit headers; at most an hour."""
    given = response.headers.get("retry-after", "").strip()
    if not given.isdigit():
        limit = re.search(r";\s*r\s*=\s*0\s*;\s*t\s*=\s*(\d+)", response.headers.get("ratelimit", ""))
        given = limit[1] if limit else ""
    return float(min(int(given[:9]), 3600)) if given else None
