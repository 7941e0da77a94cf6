"""The ggml layer refuses a library it was not written for, with one sentence and no traceback of ctypes."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from engine import ggml
from engine.errors import GgmlMismatch


def _import_after(preparation: str) -> subprocess.CompletedProcess[str]:
    """Import the layer in a process of its own, in which something was changed first."""
    program = (
        f"{preparation}\n"
        "from engine.errors import GgmlMismatch\n"
        "try:\n"
        "    import engine.ggml\n"
        "except GgmlMismatch as error:\n"
        "    print(error)\n"
        "else:\n"
        "    print('imported')\n"
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)


def test_imports_with_the_library_it_was_written_for() -> None:
    assert _import_after("").stdout.strip() == "imported"


def test_another_version_is_refused() -> None:
    said = _import_after("import llama_cpp; llama_cpp.__version__ = '0.3.35'").stdout
    assert "0.3.35" in said
    assert f'pip install "llama-cpp-python=={ggml.LLAMA_CPP_PYTHON_VERSION}"' in said


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the loader keeps one copy by name")
def test_a_second_copy_of_the_library_is_refused() -> None:
    said = _import_after(
        "import ctypes, os, llama_cpp\n"
        "ctypes.CDLL(os.path.join(os.path.dirname(llama_cpp.__file__), 'lib', 'libggml-cpu.so'))"
    ).stdout
    assert "libggml-cpu is loaded twice" in said


def test_a_missing_symbol_is_refused() -> None:
    with pytest.raises(GgmlMismatch, match="ggml_no_such_function"):
        ggml.symbol("ggml_no_such_function", None)


def test_a_symbol_is_an_object_of_our_own() -> None:
    """llama-cpp-python's declarations of the same functions must stay as they are."""
    from llama_cpp import llama_cpp as libllama

    before = libllama.llama_get_logits.restype
    ggml.symbol("llama_get_logits", ctypes.c_void_p, ctypes.c_void_p)
    assert libllama.llama_get_logits.restype is before
