"""One level of a label tree as the arrays that the search reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_xel.types import Float32Array, Int32Array, Int64Array, UInt32Array

UInt16Array = npt.NDArray[np.uint16]
LAYER_ARRAYS = ("child_start", "bias", "scale", "node_ptr", "nodes", "entry_starts", "entries")


@dataclass(frozen=True, slots=True)
class NodeWeights:
    """What training a node's rankers gives, sorted by feature, then child."""

    child: npt.NDArray[np.uint8]
    feature: Int32Array
    value: Float32Array
    bias: Float32Array  # (n_children,)


@dataclass(frozen=True, slots=True)
class Layer:
    """The rankers of all nodes of a level. The children are numbered through."""

    child_start: Int32Array  # (n_nodes + 1,): where each node's children begin
    bias: Float32Array  # (n_children,)
    scale: Float32Array  # (n_children,): what an 8-bit weight is multiplied by
    node_ptr: UInt32Array  # (dim + 1,): per feature, where its nodes begin
    nodes: UInt16Array | UInt32Array  # nodes with weights for a feature, sorted
    entry_starts: UInt32Array  # (len(nodes) + 1,): where a node's weights for a feature begin
    entries: UInt16Array  # weights: number of the child, 8-bit value

    @classmethod
    def from_nodes(
        cls, child_start: Int32Array, nodes: Sequence[NodeWeights], dimension: int
    ) -> "Layer":
        """Lay out the weights of a level's nodes for the search, in 8 bits."""
        from spacy_xel.retrieval.label_tree.search_kernels import count_layer, fill_layer

        sizes = [len(node.value) for node in nodes]
        node_of = np.repeat(np.arange(len(nodes), dtype=np.int32), sizes)
        child = np.concatenate([node.child for node in nodes])
        feature = np.concatenate([node.feature for node in nodes])
        value = np.concatenate([node.value for node in nodes])
        bias = np.concatenate([node.bias for node in nodes])
        largest = np.zeros(len(bias), dtype=np.float32)
        np.maximum.at(largest, child_start[node_of] + child, np.abs(value))
        scale = np.where(largest > 0, largest / np.float32(127), np.float32(1)).astype(np.float32)
        node_ptr = np.zeros(dimension + 1, dtype=np.int64)
        entry_ptr = np.zeros(dimension + 1, dtype=np.int64)
        count_layer(node_of, feature, node_ptr, entry_ptr)
        node_starts: Int64Array = np.cumsum(node_ptr)
        entry_first: Int64Array = np.cumsum(entry_ptr)
        small = len(nodes) <= np.iinfo(np.uint16).max
        flat_nodes = np.empty(node_starts[-1], dtype=np.uint16 if small else np.uint32)
        entry_starts = np.empty(node_starts[-1] + 1, dtype=np.uint32)
        entries = np.empty(len(value), dtype=np.uint16)
        entry_starts[-1] = len(value)
        fill_layer(
            node_of, child, feature, value, child_start, scale,
            node_starts[:-1].copy(), entry_first[:-1].copy(), flat_nodes, entry_starts, entries,
        )  # fmt: skip
        pointers = node_starts.astype(np.uint32)
        return cls(child_start, bias, scale, pointers, flat_nodes, entry_starts, entries)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {name: getattr(self, name) for name in LAYER_ARRAYS}

    @property
    def n_children(self) -> int:
        return len(self.bias)
