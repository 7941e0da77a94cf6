"""ctypes declarations of the part of ggml that this program uses.

The library is the one inside llama-cpp-python, reached through libllama's own handle, so that our graphs can read the
target's weights: a second copy of ggml, opened by path, has other buffer types and computes garbage on them without an
error. At import the struct layout, the version and the symbols are checked against what this module was written for.
Knows nothing of models.
"""

from __future__ import annotations

import ctypes
import logging
import os
import re
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, c_bool, c_char, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_void_p
from typing import Any

import llama_cpp
from llama_cpp import llama_cpp as libllama

from engine.errors import GgmlMismatch

LLAMA_CPP_PYTHON_VERSION = "0.3.36"
GGML_VERSION = "0.25.3"

MAX_DIMS = 4
STATUS_SUCCESS = 0
DEVICE_CPU = 0  # enum ggml_backend_dev_type
USAGE_WEIGHTS = 1  # enum ggml_backend_buffer_usage
ROPE_NEOX = 2
SORT_DESCENDING = 1  # enum ggml_sort_order

F32, F16, Q4_0, Q8_0, I32, I64 = 0, 1, 2, 8, 26, 27  # enum ggml_type


class TensorStruct(ctypes.Structure):
    """`struct ggml_tensor` of ggml 0.25.3. `ne` counts elements and `nb` strides in bytes, fastest dimension first."""

    _fields_ = [
        ("type", c_int),
        ("buffer", c_void_p),
        ("ne", c_int64 * MAX_DIMS),
        ("nb", c_size_t * MAX_DIMS),
        ("op", c_int),
        ("op_params", c_int32 * 16),
        ("flags", c_int32),
        ("src", c_void_p * 10),
        ("view_src", c_void_p),
        ("view_offs", c_size_t),
        ("data", c_void_p),
        ("name", c_char * 64),
        ("extra", c_void_p),
        ("padding", c_char * 8),
    ]


class InitParams(ctypes.Structure):
    _fields_ = [("mem_size", c_size_t), ("mem_buffer", c_void_p), ("no_alloc", c_bool)]


def _libraries() -> Iterator[ctypes.CDLL]:
    """libllama's handle; on Windows also the ggml modules it has loaded, since lookup there does not follow them."""
    yield libllama._lib
    if sys.platform == "win32":
        folder = os.path.join(os.path.dirname(llama_cpp.__file__), "lib")
        for name in ("ggml-base", "ggml", "ggml-cpu"):
            path = os.path.join(folder, f"{name}.dll")
            if os.path.exists(path):
                yield ctypes.CDLL(path)  # already loaded: Windows hands back the same module


_LIBRARIES = tuple(_libraries())
_P = c_void_p
_T = c_void_p  # struct ggml_tensor *


def symbol(names: str | tuple[str, ...], restype: Any, *argtypes: Any) -> Any:
    """The function called `names` (or by the first of several names that exists).

    Raises GgmlMismatch when no library has it.
    """
    for name in (names,) if isinstance(names, str) else names:
        for library in _LIBRARIES:
            try:
                function = library[name]  # an object of our own: an attribute is shared with llama-cpp-python
            except AttributeError:
                continue
            function.restype = restype
            function.argtypes = argtypes
            return function
    raise GgmlMismatch(_mismatch(f"it has no symbol {names}"))


def _mismatch(what: str) -> str:
    return (
        f"The installed llama-cpp-python does not carry the ggml this program was written for ({what}); "
        f'install it with: pip install "llama-cpp-python=={LLAMA_CPP_PYTHON_VERSION}"'
    )


version = symbol("ggml_version", c_char_p)
tensor_overhead = symbol("ggml_tensor_overhead", c_size_t)
graph_overhead_custom = symbol("ggml_graph_overhead_custom", c_size_t, c_size_t, c_bool)
type_size = symbol("ggml_type_size", c_size_t, c_int)
blck_size = symbol("ggml_blck_size", c_int64, c_int)
type_name = symbol("ggml_type_name", c_char_p, c_int)
nbytes = symbol("ggml_nbytes", c_size_t, _T)
init = symbol("ggml_init", _P, InitParams)
free = symbol("ggml_free", None, _P)
set_name = symbol("ggml_set_name", _T, _T, c_char_p)
set_input = symbol("ggml_set_input", None, _T)
set_output = symbol("ggml_set_output", None, _T)
new_tensor_4d = symbol("ggml_new_tensor_4d", _T, _P, c_int, c_int64, c_int64, c_int64, c_int64)
new_graph_custom = symbol("ggml_new_graph_custom", _P, _P, c_size_t, c_bool)
build_forward_expand = symbol("ggml_build_forward_expand", None, _P, _T)
op_name = symbol("ggml_op_name", c_char_p, c_int)

add = symbol("ggml_add", _T, _P, _T, _T)
mul = symbol("ggml_mul", _T, _P, _T, _T)
mul_mat = symbol("ggml_mul_mat", _T, _P, _T, _T)
rms_norm = symbol("ggml_rms_norm", _T, _P, _T, c_float)
scale = symbol("ggml_scale", _T, _P, _T, c_float)
tanh = symbol("ggml_tanh", _T, _P, _T)
swiglu_split = symbol("ggml_swiglu_split", _T, _P, _T, _T)
geglu_split = symbol("ggml_geglu_split", _T, _P, _T, _T)
get_rows = symbol("ggml_get_rows", _T, _P, _T, _T)
set_rows = symbol("ggml_set_rows", _T, _P, _T, _T, _T)
argsort = symbol("ggml_argsort", _T, _P, _T, c_int)
top_k = symbol("ggml_top_k", _T, _P, _T, c_int)
concat = symbol("ggml_concat", _T, _P, _T, _T, c_int)
cont = symbol("ggml_cont", _T, _P, _T)
permute = symbol("ggml_permute", _T, _P, _T, c_int, c_int, c_int, c_int)
reshape_4d = symbol("ggml_reshape_4d", _T, _P, _T, c_int64, c_int64, c_int64, c_int64)
view_4d = symbol(
    "ggml_view_4d", _T, _P, _T, c_int64, c_int64, c_int64, c_int64, c_size_t, c_size_t, c_size_t, c_size_t
)
pad_ext = symbol("ggml_pad_ext", _T, _P, _T, *([c_int] * 8))
_ROPE_TAIL = [c_int, c_int, *([c_float] * 6)]
rope_ext = symbol("ggml_rope_ext", _T, _P, _T, _T, _T, c_int, *_ROPE_TAIL)
flash_attn_ext = symbol("ggml_flash_attn_ext", _T, _P, _T, _T, _T, _T, c_float, c_float, c_float)
flash_attn_ext_add_sinks = symbol("ggml_flash_attn_ext_add_sinks", None, _T, _T)

gallocr_new = symbol("ggml_gallocr_new", _P, _P)
gallocr_free = symbol("ggml_gallocr_free", None, _P)
gallocr_reserve = symbol("ggml_gallocr_reserve", c_bool, _P, _P)
gallocr_alloc_graph = symbol("ggml_gallocr_alloc_graph", c_bool, _P, _P)
gallocr_get_buffer_size = symbol("ggml_gallocr_get_buffer_size", c_size_t, _P, c_int)
alloc_ctx_tensors_from_buft = symbol("ggml_backend_alloc_ctx_tensors_from_buft", _P, _P, _P)

buffer_free = symbol("ggml_backend_buffer_free", None, _P)
buffer_get_size = symbol("ggml_backend_buffer_get_size", c_size_t, _P)
buffer_get_type = symbol("ggml_backend_buffer_get_type", _P, _P)
buffer_clear = symbol("ggml_backend_buffer_clear", None, _P, ctypes.c_uint8)
buffer_is_host = symbol("ggml_backend_buffer_is_host", c_bool, _P)
buffer_set_usage = symbol("ggml_backend_buffer_set_usage", None, _P, c_int)
buft_get_device = symbol("ggml_backend_buft_get_device", _P, _P)
buft_alloc_buffer = symbol("ggml_backend_buft_alloc_buffer", _P, _P, c_size_t)
tensor_set = symbol("ggml_backend_tensor_set", None, _T, _P, c_size_t, c_size_t)
tensor_get = symbol("ggml_backend_tensor_get", None, _T, _P, c_size_t, c_size_t)

backend_free = symbol("ggml_backend_free", None, _P)
backend_graph_compute = symbol("ggml_backend_graph_compute", c_int, _P, _P)
dev_count = symbol("ggml_backend_dev_count", c_size_t)
dev_get = symbol("ggml_backend_dev_get", _P, c_size_t)
dev_by_type = symbol("ggml_backend_dev_by_type", _P, c_int)
dev_name = symbol("ggml_backend_dev_name", c_char_p, _P)
dev_description = symbol("ggml_backend_dev_description", c_char_p, _P)
dev_memory = symbol("ggml_backend_dev_memory", None, _P, POINTER(c_size_t), POINTER(c_size_t))
dev_type = symbol("ggml_backend_dev_type", c_int, _P)
dev_init = symbol("ggml_backend_dev_init", _P, _P, c_char_p)
dev_buffer_type = symbol("ggml_backend_dev_buffer_type", _P, _P)
dev_supports_op = symbol("ggml_backend_dev_supports_op", c_bool, _P, _T)
dev_supports_buft = symbol("ggml_backend_dev_supports_buft", c_bool, _P, _P)
dev_backend_reg = symbol("ggml_backend_dev_backend_reg", _P, _P)
reg_get_proc_address = symbol("ggml_backend_reg_get_proc_address", _P, _P, c_char_p)
quantize_chunk = symbol(
    "ggml_quantize_chunk", c_size_t, c_int, POINTER(c_float), _P, c_int64, c_int64, c_int64, POINTER(c_float)
)


def read(tensor: int) -> TensorStruct:
    """The struct behind a tensor pointer."""
    return TensorStruct.from_address(tensor)


def extra_buffer_types(device: int) -> list[int]:
    """Buffer types of `device` that keep matrices in another order (repacked) for faster products."""
    address = reg_get_proc_address(dev_backend_reg(device), b"ggml_backend_dev_get_extra_bufts")
    if not address:
        return []
    listed = ctypes.CFUNCTYPE(POINTER(c_void_p), c_void_p)(address)(device)
    found: list[int] = []
    while listed and listed[len(found)]:
        found.append(listed[len(found)])
    return found


def set_threads(device: int, backend: int, threads: int) -> None:
    """Number of threads of a CPU backend; other backends have no such setting and are left alone."""
    address = reg_get_proc_address(dev_backend_reg(device), b"ggml_backend_set_n_threads")
    if address:
        ctypes.CFUNCTYPE(None, c_void_p, c_int)(address)(backend, threads)


_log = logging.getLogger("libllama")
_log.addHandler(logging.NullHandler())
_LEVELS = {2: logging.INFO, 3: logging.WARNING, 4: logging.ERROR}  # enum ggml_log_level
last_errors: deque[str] = deque(maxlen=3)  # what libllama and ggml complained about last
_listening: list[list[str]] = []


@libllama.llama_log_callback
def _on_log(level: int, text: bytes, _data: object) -> None:
    """To Python's logging instead of the terminal; without a handler it is dropped."""
    line = text.decode("utf-8", "replace").rstrip()
    if level == 4 and line:
        last_errors.append(line)
    for lines in _listening:
        lines.append(line)
    _log.log(_LEVELS.get(level, logging.DEBUG), "%s", line)


@contextmanager
def log_lines() -> Iterator[list[str]]:
    """What libllama and ggml say meanwhile: some sizes come out through the log only."""
    lines: list[str] = []
    _listening.append(lines)
    try:
        yield lines
    finally:
        _listening.remove(lines)


def _check_libraries_loaded_once() -> None:
    """Refuse a process that holds a ggml library twice (Linux; elsewhere the loader keeps one copy by name)."""
    if not sys.platform.startswith("linux"):
        return
    paths: dict[str, set[str]] = {}
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            found = re.search(r"(/.*/lib(ggml[a-z-]*|llama)\.so[0-9.]*)$", line.rstrip())
            if found:
                paths.setdefault(found[2], set()).add(found[1])
    for name, where in paths.items():
        if len(where) > 1:
            raise GgmlMismatch(
                f"The library lib{name} is loaded twice ({', '.join(sorted(where))}); "
                "start the program in a fresh environment that holds one llama-cpp-python."
            )


def _check_abi() -> None:
    """Compare version, struct sizes and the fields of a real tensor with the declarations above."""
    if llama_cpp.__version__ != LLAMA_CPP_PYTHON_VERSION:
        raise GgmlMismatch(_mismatch(f"its version is {llama_cpp.__version__}"))
    if version().decode() != GGML_VERSION:
        raise GgmlMismatch(_mismatch(f"its ggml is {version().decode()}, not {GGML_VERSION}"))
    object_header = 32  # struct ggml_object: offs, size, next, type + padding
    if tensor_overhead() != object_header + ctypes.sizeof(TensorStruct):
        raise GgmlMismatch(_mismatch("its tensors have another size"))
    context = init(InitParams(4 * tensor_overhead(), None, True))
    try:
        whole = new_tensor_4d(context, F16, 6, 5, 4, 3)
        part = view_4d(context, whole, 6, 2, 1, 1, 12, 24, 24, 12)
        set_name(part, b"probe")
        seen_whole, seen_part = read(whole), read(part)
        right = (
            seen_whole.type == F16
            and list(seen_whole.ne) == [6, 5, 4, 3]
            and list(seen_whole.nb) == [2, 12, 60, 240]
            and seen_part.view_src == whole
            and seen_part.view_offs == 12
            and seen_part.src[0] == whole
            and seen_part.name == b"probe"
            and op_name(seen_part.op) == b"VIEW"
        )
    finally:
        free(context)
    if not right:
        raise GgmlMismatch(_mismatch("its tensors are laid out differently"))


_check_abi()
_check_libraries_loaded_once()
libllama.llama_log_set(_on_log, c_void_p(0))
