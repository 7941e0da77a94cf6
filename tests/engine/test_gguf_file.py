"""GGUF headers: against the `gguf` package's reader, from streams, and all that can be wrong with a file."""

from __future__ import annotations

import ctypes
import hashlib
import io
import os
import pickle
import random
import struct
from pathlib import Path
from typing import Any

import gguf
import llama_cpp
import numpy as np
import pytest

from engine.errors import ModelFileError
from engine.gguf_file import CannotOpen, Header, HeaderIncomplete, StringArray, read_header
from engine.tensor_types import TENSOR_TYPES
from tests.fixture_files import FIXTURES, FOLDER
from tests.packaged_target import packaged_target

FILE = FOLDER / "dflash2.gguf"


# --- what is read -----------------------------------------------------------------------------------------------------


def assert_as_the_gguf_package_reads_it(path: Path) -> Header:
    header, twin = read_header(path), gguf.GGUFReader(path)
    keys = {name: field for name, field in twin.fields.items() if not name.startswith("GGUF.")}
    assert list(header.metadata) == list(keys)
    for name, field in keys.items():
        mine, theirs = header.metadata[name], field.contents()
        assert (list(mine) if isinstance(mine, (StringArray, np.ndarray)) else mine) == theirs, name
    assert list(header.tensors) == [tensor.name for tensor in twin.tensors]
    for tensor in twin.tensors:
        info = header.tensors[tensor.name]
        assert info.shape == tuple(int(n) for n in reversed(tensor.shape))
        assert (info.type, info.type_name) == (tensor.tensor_type.value, tensor.tensor_type.name)
        assert (info.offset, info.nbytes) == (tensor.data_offset, tensor.n_bytes)
    assert header.data_offset == twin.data_offset
    assert header.file_bytes == path.stat().st_size
    assert header.parameters == sum(int(tensor.n_elements) for tensor in twin.tensors)
    return header


@pytest.mark.parametrize("name", FIXTURES)
def test_agrees_with_the_gguf_package(name: str) -> None:
    header = assert_as_the_gguf_package_reads_it(FOLDER / f"{name}.gguf")
    assert (header.architecture, header.version, header.name) == ("dflash", 3, name)
    assert header.quantisation == "F32"


def test_agrees_with_the_gguf_package_on_a_whole_vocabulary() -> None:
    header = assert_as_the_gguf_package_reads_it(packaged_target())
    tokens = header.metadata["tokenizer.ggml.tokens"]
    assert len(tokens) == 49152
    assert (tokens[0], tokens[1], tokens[-1]) == (tokens[-49152], "<|im_start|>", tokens[49151])


def test_block_sizes_are_those_of_the_ggml_in_use() -> None:
    lib = llama_cpp.llama_cpp._lib
    lib.ggml_type_name.argtypes, lib.ggml_type_name.restype = [ctypes.c_int], ctypes.c_char_p
    lib.ggml_type_size.argtypes, lib.ggml_type_size.restype = [ctypes.c_int], ctypes.c_size_t
    lib.ggml_blck_size.argtypes, lib.ggml_blck_size.restype = [ctypes.c_int], ctypes.c_int64
    expected = {
        kind: (lib.ggml_type_name(kind).decode().lower(), lib.ggml_blck_size(kind), lib.ggml_type_size(kind))
        for kind in range(max(TENSOR_TYPES) + 1)
        if lib.ggml_blck_size(kind)  # 0 where a type was withdrawn
    }
    assert {kind: (t.name.lower(), t.block, t.block_bytes) for kind, t in TENSOR_TYPES.items()} == expected


def test_every_value_type(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "types.gguf", "test")
    values: dict[str, tuple[Any, gguf.GGUFValueType]] = {
        "u8": (200, gguf.GGUFValueType.UINT8),
        "i8": (-100, gguf.GGUFValueType.INT8),
        "u16": (60000, gguf.GGUFValueType.UINT16),
        "i16": (-30000, gguf.GGUFValueType.INT16),
        "u32": (4_000_000_000, gguf.GGUFValueType.UINT32),
        "i32": (-2_000_000_000, gguf.GGUFValueType.INT32),
        "u64": (1 << 63, gguf.GGUFValueType.UINT64),
        "i64": (-(1 << 62), gguf.GGUFValueType.INT64),
        "f32": (0.25, gguf.GGUFValueType.FLOAT32),
        "f64": (0.1, gguf.GGUFValueType.FLOAT64),
        "yes": (True, gguf.GGUFValueType.BOOL),
        "no": (False, gguf.GGUFValueType.BOOL),
        "text": ("비 🌧", gguf.GGUFValueType.STRING),
    }
    for key, (value, kind) in values.items():
        writer.add_key_value(key, value, kind)
    writer.add_array("numbers", [1, -2, 3])
    writer.add_array("floats", [0.5, 1.5])
    writer.add_array("flags", [True, False, True])
    writer.add_array("texts", ["a", "", "비"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    header = assert_as_the_gguf_package_reads_it(tmp_path / "types.gguf")
    for key, (value, _) in values.items():
        assert header.metadata[key] == value
        assert type(header.metadata[key]) is type(value)
    assert header.metadata["flags"].dtype == np.bool_
    assert header.metadata["numbers"].dtype == np.int32
    assert header.text("text") == "비 🌧"
    assert header.text("u8") == header.text("absent") == ""


def test_counts_of_an_architecture(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        keys=[
            text("general.architecture", "llama"),
            number("llama.block_count", 30),
            key("llama.head_count", 9, struct.pack("<IQ3I", 4, 3, 9, 9, 9)),
            key("llama.mixed", 9, struct.pack("<IQ2I", 4, 2, 9, 8)),
            key("llama.flag", 7, b"\1"),
        ],
    )
    header = read_header(path)
    assert header.get("block_count") == header.count("block_count") == 30
    assert header.count("head_count") == 9
    assert header.count("mixed") is header.count("flag") is header.count("absent") is None
    assert header.name == path.name


# --- string arrays ----------------------------------------------------------------------------------------------------


def packed(*entries: bytes) -> StringArray:
    return StringArray(b"".join(struct.pack("<Q", len(entry)) + entry for entry in entries), len(entries))


def test_string_array() -> None:
    array = packed(b"one", b"", "셋".encode(), b"\xed\x95")
    assert len(array) == 4
    assert list(array) == ["one", "", "셋", "\ufffd"]
    assert array.entry(3) == array.entry(-1) == b"\xed\x95"
    assert (array[-4], array[1:3]) == ("one", ["", "셋"])
    for index in (4, -5):
        with pytest.raises(IndexError):
            array[index]


def test_string_array_digest_tells_arrays_apart() -> None:
    array = packed(b"ab", b"c")
    assert array == packed(b"ab", b"c")
    assert array.digest == packed(b"ab", b"c").digest
    assert array.digest == hashlib.sha256(struct.pack("<Q2sQ1s", 2, b"ab", 1, b"c")).hexdigest()
    for other in (packed(b"a", b"bc"), packed(b"c", b"ab"), packed(b"ab"), packed(b"abc")):
        assert array != other
        assert array.digest != other.digest


# --- streams and prefixes ---------------------------------------------------------------------------------------------


class Trickle(io.RawIOBase):
    """A stream that cannot seek and hands out little at a time, as a network does."""

    def __init__(self, data: bytes, at_once: int) -> None:
        self._data, self._at_once, self.taken = data, at_once, 0

    def read(self, size: int = -1) -> bytes:
        chunk = self._data[self.taken : self.taken + min(size, self._at_once)]
        self.taken += len(chunk)
        return chunk


def same(a: Header, b: Header) -> bool:
    """Equal but for the path."""
    return a.tensors == b.tensors and a.data_offset == b.data_offset and str(a.metadata) == str(b.metadata)


@pytest.mark.parametrize("at_once", [1, 7, 1 << 20])
def test_reads_a_stream(at_once: int) -> None:
    header = read_header(Trickle(FILE.read_bytes(), at_once), name="drafter.gguf")  # type: ignore[arg-type]
    assert same(header, read_header(FILE))
    assert header.path == "drafter.gguf"
    assert header.file_bytes == FILE.stat().st_size


def test_does_not_read_a_file_far_past_its_header() -> None:
    data = packaged_target().read_bytes()
    stream = Trickle(data, 1 << 30)
    header = read_header(stream)  # type: ignore[arg-type]
    assert header.data_offset <= stream.taken <= 2 * header.data_offset + (1 << 20)


def test_every_prefix_of_the_header_says_how_far_it_came() -> None:
    data, whole = FILE.read_bytes(), read_header(FILE)
    header_end = whole.data_offset - whole.alignment  # at most that much padding
    for length in [*range(4, header_end, 97), header_end]:
        with pytest.raises(HeaderIncomplete, match=r"prefix\.gguf is cut short.*download it again") as caught:
            read_header(io.BytesIO(data[:length]), name="prefix.gguf")
        assert caught.value.reached == length
        assert length < caught.value.needed <= whole.data_offset
    assert same(read_header(io.BytesIO(data[: whole.data_offset])), whole)


def test_a_prefix_can_be_lengthened_until_it_is_enough() -> None:
    data, length, tries = FILE.read_bytes(), 64, 0
    while True:
        try:
            header = read_header(io.BytesIO(data[:length]), file_bytes=len(data))
            break
        except HeaderIncomplete as error:
            assert error.needed > length
            length, tries = max(error.needed, 2 * length), tries + 1
    assert same(header, read_header(FILE))
    assert header.file_bytes == len(data)
    assert tries < 12


def test_the_told_length_of_a_stream_is_held_against_its_tensors() -> None:
    data = FILE.read_bytes()
    with pytest.raises(ModelFileError, match="cut short"):
        read_header(io.BytesIO(data[:20000]), name="x.gguf", file_bytes=20000)


def test_incomplete_header_survives_a_process_border() -> None:
    error = pickle.loads(pickle.dumps(HeaderIncomplete("cut short.", 5, 9)))
    assert (str(error), error.reached, error.needed) == ("cut short.", 5, 9)


# --- no GGUF file at all ----------------------------------------------------------------------------------------------


def refused(source: Path) -> str:
    """The sentence of a refusal: one line, ending in a full stop, naming the file."""
    with pytest.raises(ModelFileError) as caught:
        read_header(source)
    sentence = str(caught.value)
    assert source.name in sentence
    assert sentence.endswith(".") and "\n" not in sentence
    return sentence


def test_missing_file(tmp_path: Path) -> None:
    assert "does not exist" in refused(tmp_path / "gone.gguf")


def test_folder(tmp_path: Path) -> None:
    assert "is a folder" in refused(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    assert "not a regular file" in refused(tmp_path / "pipe.gguf")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_file_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "private.gguf"
    path.write_bytes(b"GGUF")
    path.chmod(0)
    assert "permissions" in refused(path)


def test_impossible_path() -> None:
    with pytest.raises(ModelFileError, match="is not a path|does not exist"):
        read_header("a\0b.gguf")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty; download it again"),
        (b"hello, this is a text", "is not a GGUF file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
        (b"<!DOCTYPE html><html>", "is a web page"),
        (b"PK\x03\x04" + bytes(40), "PyTorch checkpoint"),
        (struct.pack("<Q", 20) + b'{"__metadata__": {}}', "safetensors"),
        (b"tjgg" + bytes(40), "before GGUF"),
        (bytes(4096), "only zeros"),
        (b"GGU", "cut short"),
        (b"GGUF", "cut short"),
        (b"GGUF\x03\0\0\0", "cut short"),
    ],
)
def test_no_gguf_file(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    assert said in refused(path)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (struct.pack(">I", 3), "big-endian"), (struct.pack("<I", 1), "version 1"), (struct.pack("<I", 4), "newer"),
        (struct.pack("<I", 0), "damaged"), (struct.pack("<I", 101), "damaged"), (b"\x03\x00\x80\x00", "damaged"),
    ],
)
def test_other_versions(tmp_path: Path, version: bytes, said: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + version + bytes(64))
    assert said in refused(path)


def test_no_file_name() -> None:
    for nothing in ("", " "):
        with pytest.raises(CannotOpen, match="No file name was given"):
            read_header(nothing)


def test_version_2_is_read(tmp_path: Path) -> None:
    data = bytearray(FILE.read_bytes())
    data[4] = 2
    (tmp_path / "v2.gguf").write_bytes(data)
    assert same(read_header(tmp_path / "v2.gguf"), read_header(FILE))


# --- cut short --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0001, 0.001, 0.004, 0.006, 0.008, 0.5, 0.9999])
def test_truncated_file(tmp_path: Path, share: float) -> None:
    data = FILE.read_bytes()
    path = tmp_path / "cut.gguf"
    path.write_bytes(data[: int(len(data) * share)])
    sentence = refused(path)
    assert "is cut short" in sentence
    assert "download it again" in sentence


def test_one_byte_short(tmp_path: Path) -> None:
    header = read_header(FILE)
    end = max(tensor.offset + tensor.nbytes for tensor in header.tensors.values())
    path = tmp_path / "cut.gguf"
    path.write_bytes(FILE.read_bytes()[: end - 1])
    assert f"ends at byte {end}" in refused(path)
    path.write_bytes(FILE.read_bytes()[:end])
    assert same(read_header(path), header)


# --- damaged inside ---------------------------------------------------------------------------------------------------


def key(name: str | bytes, kind: int, value: bytes) -> bytes:
    raw = name.encode() if isinstance(name, str) else name
    return struct.pack("<Q", len(raw)) + raw + struct.pack("<I", kind) + value


def number(name: str, value: int) -> bytes:
    return key(name, 4, struct.pack("<I", value))


def text(name: str, value: str) -> bytes:
    return key(name, 8, struct.pack("<Q", len(value.encode())) + value.encode())


def array(name: str, item: int, count: int, values: bytes = b"") -> bytes:
    return key(name, 9, struct.pack("<IQ", item, count) + values)


def test_an_array_of_arrays_is_read(tmp_path: Path) -> None:
    inner = struct.pack("<IQQ2sQ", 8, 2, 2, b"ab", 0) + struct.pack("<IQI", 4, 1, 7)
    strings, numbers = read_header(write(tmp_path, [array("tags", 9, 2, inner), number("last", 5)])).metadata["tags"]
    assert (list(strings), list(numbers)) == (["ab", ""], [7])


def tensor(
    name: str | bytes = "t",
    shape: tuple[int, ...] = (4,),
    kind: int = 0,
    offset: int = 0,
    dimensions: int | None = None,
) -> bytes:
    """An entry of the tensor list; `shape` in the file's order."""
    raw = name.encode() if isinstance(name, str) else name
    count = len(shape) if dimensions is None else dimensions
    listed = struct.pack(f"<I{len(shape)}Q", count, *shape)
    return struct.pack("<Q", len(raw)) + raw + listed + struct.pack("<IQ", kind, offset)


def write(
    folder: Path,
    keys: list[bytes] | None = None,
    tensors: list[bytes] | None = None,
    counts: tuple[int, int] | None = None,
    data: int = 4096,
) -> Path:
    """A GGUF file, byte by byte; `counts` = tensors, keys where the file lies about them."""
    keys, tensors = keys or [], tensors or []
    counts = counts or (len(tensors), len(keys))
    path = folder / "made.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, *counts) + b"".join(keys + tensors) + bytes(data))
    return path


HUGE = (1 << 64) - 1  # as a signed number: -1


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ([key(b"\xff\xfe", 4, bytes(4))], "not valid UTF-8"),
        ([key("", 4, bytes(4))], "has no name"),
        ([number("twice", 1), number("twice", 2)], "'twice' occurs twice"),
        ([key("odd", 13, bytes(8))], "'odd' has the unknown type 13"),
        ([array("nested", 9, 1, struct.pack("<IQ", 9, 1) * 3)], "'nested' is an array of the unknown type 9"),
        ([array("nested", 9, HUGE)], "cut short"),
        ([struct.pack("<Q", 70000) + bytes(8)], "70000 bytes long"),
        ([struct.pack("<Q", HUGE)], "bytes long"),
        ([key("long", 8, struct.pack("<Q", HUGE))], "longer than"),
        ([key("long", 8, struct.pack("<Q", 1 << 20))], "cut short"),
        ([array("many", 4, HUGE)], "longer than"),
        ([array("many", 4, 1 << 20)], "cut short"),
        ([array("strings", 8, HUGE)], "cut short"),
        ([array("strings", 8, 2, struct.pack("<Q", HUGE))], "longer than"),
        ([array("strings", 8, 2, struct.pack("<Q", 1 << 62))], "longer than"),
        ([number("general.alignment", 0)], "alignment 0"),
        ([number("general.alignment", 24)], "alignment 24"),
        ([text("general.alignment", "32")], "alignment '32'"),
        ([key("general.alignment", 6, struct.pack("<f", 32.0))], "alignment 32.0"),
        ([key("split.count", 2, struct.pack("<H", 3))], "one of 3 parts of a split model"),
    ],
)
def test_damaged_metadata(tmp_path: Path, keys: list[bytes], said: str) -> None:
    assert said in refused(write(tmp_path, keys))


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        ([tensor("a"), tensor("a")], "'a' occurs twice"),
        ([tensor(b"\xff")], "not valid UTF-8"),
        ([tensor("n" * 64)], "64 bytes long"),
        ([tensor(dimensions=5)], "5 dimensions"),
        ([tensor(dimensions=0xFFFFFFFF)], "4294967295 dimensions"),
        ([tensor(kind=4)], "type number 4"),
        ([tensor(kind=999)], "type number 999"),
        ([tensor(shape=(31, 2), kind=8)], "31 elements, not a multiple of 32"),
        ([tensor(shape=(HUGE,))], "impossible shape"),
        ([tensor(shape=(1 << 32, 1 << 32))], "impossible shape"),
        ([tensor(offset=16)], "multiple of 32 bytes"),
        ([tensor(offset=1 << 40)], "cut short"),
        ([tensor(offset=HUGE & ~31)], "cut short"),
        ([tensor(shape=(1 << 20,))], "cut short"),
    ],
)
def test_damaged_tensor_list(tmp_path: Path, tensors: list[bytes], said: str) -> None:
    assert said in refused(write(tmp_path, tensors=tensors))


@pytest.mark.parametrize("counts", [(HUGE, 0), (0, HUGE), (1 << 32, 1 << 32)])
def test_claims_of_endless_lists(tmp_path: Path, counts: tuple[int, int]) -> None:
    path = write(tmp_path, counts=counts, data=0)
    assert "cut short" in refused(path)


def test_a_scalar_tensor_and_an_empty_one(tmp_path: Path) -> None:
    path = write(tmp_path, tensors=[tensor("scalar", ()), tensor("empty", (0, 5), offset=32)])
    header = read_header(path)
    assert (header.tensors["scalar"].shape, header.tensors["scalar"].nbytes) == ((), 4)
    assert (header.tensors["empty"].shape, header.tensors["empty"].nbytes) == ((5, 0), 0)


def test_values_that_are_not_utf8_are_replaced_not_refused(tmp_path: Path) -> None:
    path = write(tmp_path, [key("general.name", 8, struct.pack("<Q", 2) + b"\xffx")])
    assert read_header(path).name == "\ufffdx"


def test_random_damage_never_gets_through_as_anything_but_a_refusal() -> None:
    data, end = FILE.read_bytes()[:20000], read_header(FILE).data_offset
    dice = random.Random(1)
    refusals = 0
    for _ in range(400):
        damaged = bytearray(data)
        for _ in range(dice.choice((1, 1, 4))):
            damaged[dice.randrange(end)] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)))
        try:
            read_header(io.BytesIO(damaged), name="damaged.gguf")
        except ModelFileError as error:
            assert "damaged.gguf" in str(error)
            refusals += 1
    assert refusals > 50  # the others changed a value, not the structure
