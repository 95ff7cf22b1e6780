"""All rankers of a label tree as the flat arrays that the search reads."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_xel.errors import Errors
from spacy_xel.types import Float32Array, Int32Array, Int64Array, UInt32Array

UInt8Array = npt.NDArray[np.uint8]
UInt16Array = npt.NDArray[np.uint16]
PAIR_BLOCK = 16  # pairs that share one place in the words


class NodeWeights(NamedTuple):
    """What training a node's rankers gives."""

    features: Int32Array  # (n,): those with a weight
    sizes: npt.NDArray[np.int16]  # (n,): how many words each has
    words: UInt16Array  # (sum of sizes,): 8-bit weights
    bias: Float32Array  # (n_children,)
    scale: Float32Array  # (n_children,): what an 8-bit weight is multiplied by


class Level(NamedTuple):
    """The rankers of a level's nodes."""

    child_start: Int32Array  # (n_nodes + 1,): where each node's children begin on the next level
    nodes: Sequence[NodeWeights]


@dataclass(frozen=True, slots=True)
class Layout:
    """The rankers of all levels.

    The weights of a level lie feature by feature. Per feature there is a run of pairs, one for
    each node that has weights for it, sorted by node; per pair, a run of words. A word is the
    number of one of the node's children and, in the upper byte, its weight. Where that would take
    as many words as half the children, or more, the words are the weights of all children instead,
    two to a word.
    """

    level_start: Int64Array  # (n_levels + 1,): where each level's nodes begin, root not counted
    child_start: Int32Array  # per inner node, the root first: where its children begin
    bias: Float32Array  # per node but the root
    scale: Float32Array  # the same: what an 8-bit weight is multiplied by
    pair_start: UInt32Array  # (n_levels * dimension + 1,): where each feature's pairs begin
    pair_node: UInt16Array | UInt32Array  # per pair
    pair_size: UInt8Array  # per pair, in full blocks: its number of words less one
    word_start: UInt32Array  # where the words of every PAIR_BLOCK-th pair begin
    words: UInt16Array

    @classmethod
    def from_levels(cls, levels: Sequence[Level], dimension: int) -> "Layout":
        """Lay out trained nodes for the search."""
        from spacy_xel.retrieval.label_tree.search_kernels import count_pairs, fill_pairs

        n_children = [level.child_start[-1] for level in levels]
        level_start = np.concatenate([[0], np.cumsum(n_children)]).astype(np.int64)
        child_starts = [
            level.child_start[:-1] + first
            for level, first in zip(levels, level_start, strict=False)
        ]
        sizes = [[len(node.features) for node in level.nodes] for level in levels]
        n_pairs = sum(map(sum, sizes))
        n_words = sum(len(node.words) for level in levels for node in level.nodes)
        if max(n_pairs, n_words) > np.iinfo(np.uint32).max:
            raise ValueError(Errors.XE042.format(weights=n_words))
        pair_start = np.zeros(len(levels) * dimension + 1, dtype=np.uint32)
        most_nodes = max((len(level.nodes) for level in levels), default=0)
        pair_node: npt.NDArray[Any] = np.empty(
            n_pairs, dtype=np.uint16 if most_nodes <= 1 << 16 else np.uint32
        )
        n_blocks = n_pairs // PAIR_BLOCK + 1
        pair_size = np.zeros(n_blocks * PAIR_BLOCK, dtype=np.uint8)
        words = np.empty(n_words, dtype=np.uint16)
        next_pair = np.zeros(dimension + 1, dtype=np.int64)
        next_word = np.zeros(dimension + 1, dtype=np.int64)
        first_pair = first_word = 0
        for number, level in enumerate(levels):
            next_pair[:] = 0
            next_word[:] = 0
            for node in level.nodes:
                count_pairs(node.features, node.sizes, next_pair, next_word)
            next_pair[0], next_word[0] = first_pair, first_word
            np.cumsum(next_pair, out=next_pair)
            np.cumsum(next_word, out=next_word)
            pair_start[number * dimension : (number + 1) * dimension + 1] = next_pair
            first_pair, first_word = int(next_pair[-1]), int(next_word[-1])
            for i, node in enumerate(level.nodes):
                fill_pairs(
                    i, node.features, node.sizes, node.words, next_pair, next_word,
                    pair_node, pair_size, words,
                )  # fmt: skip
        block_sizes = pair_size.reshape(-1, PAIR_BLOCK).sum(axis=1, dtype=np.int64) + PAIR_BLOCK
        nodes = [node for level in levels for node in level.nodes]
        return cls(
            level_start=level_start,
            child_start=np.concatenate([*child_starts, level_start[-1:]]).astype(np.int32),
            bias=np.concatenate([node.bias for node in nodes]),
            scale=np.concatenate([node.scale for node in nodes]),
            pair_start=pair_start,
            pair_node=pair_node,
            pair_size=pair_size,
            word_start=(np.cumsum(block_sizes) - block_sizes).astype(np.uint32),
            words=words,
        )

    @property
    def n_levels(self) -> int:
        return len(self.level_start) - 1

    @property
    def most_nodes(self) -> int:
        """Return how many nodes the widest level has."""
        return int(np.diff(self.level_start).max())

    def check(self, n_labels: int, dimension: int) -> None:
        """Raise an error if the arrays do not fit each other: compiled code does not look."""
        starts, n_nodes = self.level_start, int(self.level_start[-1])
        n_pairs = int(self.pair_start[-1])
        is_sound = (
            self.n_nodes(self.n_levels) == n_labels
            and len(self.child_start) == n_nodes - n_labels + 2
            and int(self.child_start[0]) == 0
            and int(self.child_start[-1]) == n_nodes
            and bool((np.diff(self.child_start) > 0).all())
            and bool((np.diff(starts) > 0).all())
            and len(self.bias) == len(self.scale) == n_nodes
            and len(self.pair_start) == self.n_levels * dimension + 1
            and len(self.pair_node) == n_pairs
            and len(self.pair_size) == len(self.word_start) * PAIR_BLOCK > n_pairs
            and int(self.word_start[-1]) <= len(self.words)
        )
        if not is_sound:
            problem = "its arrays do not fit each other"
            raise ValueError(Errors.XE007.format(path="the label tree", problem=problem))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {name: getattr(self, name) for name in LAYOUT_ARRAYS}

    # What explanations read, a node at a time. Level 0 is the root; nodes are numbered per level.

    def n_nodes(self, level: int) -> int:
        return int(self.level_start[level] - self.level_start[level - 1]) if level else 1

    def children(self, level: int, node: int) -> tuple[int, int]:
        """Return the first child of a node, and the first that is not one any more."""
        number = node + 1 + int(self.level_start[level - 1]) if level else 0
        first, last = self.child_start[number : number + 2] - self.level_start[level]
        return int(first), int(last)

    def parent(self, level: int, node: int) -> int:
        """Return the number of a node's parent on the level above."""
        first = 1 + int(self.level_start[level - 2]) if level > 1 else 0
        starts = self.child_start[first : first + self.n_nodes(level - 1)]
        place = node + int(self.level_start[level - 1])
        return int(np.searchsorted(starts, place, side="right")) - 1

    def ranker(self, level: int, node: int) -> tuple[float, Int64Array, Float32Array]:
        """Return the bias of a node's ranker, the features it has weights for, and the weights."""
        parent, number = self.parent(level, node), node + int(self.level_start[level - 1])
        first, last = self.children(level - 1, parent)
        child, parent_children = node - first, last - first
        dimension = (len(self.pair_start) - 1) // self.n_levels
        starts = self.pair_start[(level - 1) * dimension : level * dimension + 1]
        pairs = np.flatnonzero(self.pair_node[starts[0] : starts[-1]] == parent) + int(starts[0])
        weights = np.array([self._weight(pair, parent_children, child) for pair in pairs.tolist()])
        kept = np.flatnonzero(weights)
        features = np.searchsorted(starts, pairs[kept], side="right") - 1
        values = (weights[kept] * self.scale[number]).astype(np.float32)
        return float(self.bias[number]), features, values

    def _weight(self, pair: int, n_children: int, child: int) -> int:
        """Return the 8-bit weight of a child, 0 if it has none."""
        block = pair // PAIR_BLOCK
        before = self.pair_size[block * PAIR_BLOCK : pair]
        first = int(self.word_start[block]) + int(before.sum(dtype=np.int64)) + len(before)
        words = self.words[first : first + int(self.pair_size[pair]) + 1]
        if len(words) == (n_children + 1) // 2:
            return int(words.view(np.int8)[child])
        of_child = words[(words & 255) == child]
        return int(np.int8(of_child[0] >> 8)) if len(of_child) else 0


LAYOUT_ARRAYS = tuple(field.name for field in fields(Layout))
