"""The graph builder against NumPy, and graphs of many shapes that share one working memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from numpy.typing import NDArray

from engine import ggml
from engine.graph import Device, Graph, GraphCache, Store, write

Q4_K, IQ4_NL = 12, 20


@pytest.fixture
def graphs(device: Device) -> Iterator[GraphCache]:
    with closing(GraphCache(device, capacity=3)) as graphs:
        yield graphs


def _random(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def _product(graphs: GraphCache, rows: int, columns: int, n: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    def build(graph: Graph) -> None:
        matrix = graph.input("matrix", ggml.F32, columns, rows)
        graph.output("result", graph.mul_mat(matrix, graph.input("x", ggml.F32, columns, n)))

    matrix, x = _random(rows, columns), _random(n, columns)
    graph = graphs.get((rows, columns, n), build)
    graph.arrays["matrix"][0, 0] = matrix
    graph.arrays["x"][0, 0] = x
    graph.compute()
    return graph.arrays["result"][0, 0], x @ matrix.T


def test_any_order_of_shapes_gives_the_right_result(graphs: GraphCache) -> None:
    """Growing moves the working memory under older graphs, and a full cache throws the oldest out."""
    for rows, columns, n in [(8, 16, 2), (64, 128, 9), (8, 16, 2), (4, 4, 1), (300, 256, 20), (64, 128, 9), (8, 16, 2)]:
        ours, numpys = _product(graphs, rows, columns, n)
        np.testing.assert_allclose(ours, numpys, atol=1e-3)


def test_a_known_shape_is_not_built_again(graphs: GraphCache) -> None:
    built: list[str] = []

    def build(graph: Graph) -> None:
        built.append("once")
        graph.output("y", graph.scale(graph.input("x", ggml.F32, 4), 2.0))

    assert graphs.get("twice", build) is graphs.get("twice", build)
    assert built == ["once"]


def test_padding_and_views(graphs: GraphCache) -> None:
    def build(graph: Graph) -> None:
        x = graph.input("x", ggml.F32, 3, 4)
        graph.output("shifted", graph.pad_front(graph.view(x, (3, 3), (12,)), 1, 1))

    graph = graphs.get("shift", build)
    x = _random(4, 3)
    graph.arrays["x"][0, 0] = x
    graph.compute()
    np.testing.assert_array_equal(graph.arrays["shifted"][0, 0], np.vstack([np.zeros((1, 3)), x[:3]]))


@pytest.mark.parametrize("type_", [ggml.F32, ggml.F16, ggml.Q8_0, ggml.Q4_0, Q4_K, IQ4_NL])
def test_a_repacked_matrix_multiplies_like_a_plain_one(device: Device, graphs: GraphCache, type_: int) -> None:
    """Wherever the device says a matrix may lie, its product is the one of the same bytes in plain memory."""
    columns, rows = 256, 32
    values = _random(rows, columns)
    data = np.empty(rows * columns // ggml.blck_size(type_) * ggml.type_size(type_), np.uint8)
    if type_ == ggml.F32:
        data[:] = values.view(np.uint8).ravel()
    else:
        ggml.quantize_chunk(
            type_, values.ctypes.data_as(ggml.POINTER(ggml.c_float)), data.ctypes.data, 0, rows, columns, None
        )
    placed = Store(device.buffer_type_for_matrix(type_, columns, rows), 1)
    plain = Store(device.buffer_type, 1)
    with closing(placed), closing(plain):
        tensors = []
        for store in (placed, plain):
            tensors.append(store.tensor("matrix", type_, columns, rows))
            store.allocate(weights=True)
            write(tensors[-1], data)

        def build(graph: Graph) -> None:
            x = graph.input("x", ggml.F32, columns, 8)
            graph.output("placed", graph.mul_mat(tensors[0], x))
            graph.output("plain", graph.mul_mat(tensors[1], x))

        graph = graphs.get(type_, build)
        graph.arrays["x"][0, 0] = _random(8, columns)
        graph.compute()
        largest = np.abs(graph.arrays["plain"]).max()
        np.testing.assert_allclose(graph.arrays["placed"], graph.arrays["plain"], atol=2e-2 * float(largest))


def test_only_supported_types_are_repacked(device: Device) -> None:
    """On any other the process would crash at the first product."""
    assert device.buffer_type_for_matrix(ggml.F32, 256, 32) == device.buffer_type
    assert device.buffer_type_for_matrix(ggml.Q4_0, 256, 3) == device.buffer_type  # rows not in whole groups
