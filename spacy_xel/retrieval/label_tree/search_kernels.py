"""Compiled beam search through a label tree, and the layout of weights that it reads.

Weights of a layer lie feature by feature; per feature, the nodes that have weights for it are
sorted, and a node's weights for its children lie side by side as 8-bit numbers with a scale per
child. So one look at a feature serves all children of all nodes in the beam.
"""

import numba
import numpy as np

_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)
_LOWEST = np.float32(-np.inf)
L3_HINGE, SIGMOID = 0, 1


@numba.njit(cache=True, nogil=True)
def pack(child, value):
    """Return a weight as 16 bits: the number of the child below, its 8-bit value above."""
    return np.uint16(((value & 255) << 8) | child)


@numba.njit(cache=True, nogil=True)
def packed_child(entry):
    return np.int64(entry & np.uint16(255))


@numba.njit(cache=True, nogil=True)
def packed_value(entry):
    return np.float32(np.int8(entry >> np.uint16(8)))


@numba.njit(cache=True, nogil=True)
def count_layer(node_of, feature, node_ptr, entry_ptr):
    """Count nodes and entries per feature; all arrays sorted by node, then feature.

    node_ptr, entry_ptr (int64[dim + 1]): The answer, not yet summed.
    """
    for i in range(feature.shape[0]):
        entry_ptr[feature[i] + 1] += 1
        if i == 0 or feature[i] != feature[i - 1] or node_of[i] != node_of[i - 1]:
            node_ptr[feature[i] + 1] += 1


@numba.njit(cache=True, nogil=True)
def fill_layer(
    node_of, child, feature, value, child_start, scale, node_next, entry_next,
    nodes, entry_starts, entries,
):  # fmt: skip
    """Write a layer's weights feature by feature.

    node_next, entry_next (int64[dim]): Where each feature's nodes and entries begin; changed.
    nodes (uint32[:]), entry_starts (uint32[:]), entries (uint16[:]): The answer.
    """
    for i in range(feature.shape[0]):
        f = feature[i]
        if i == 0 or feature[i] != feature[i - 1] or node_of[i] != node_of[i - 1]:
            nodes[node_next[f]] = node_of[i]
            entry_starts[node_next[f]] = entry_next[f]
            node_next[f] += 1
        column = child_start[node_of[i]] + child[i]
        quantized = np.int32(np.rint(value[i] / scale[column]))
        entries[entry_next[f]] = pack(np.int32(child[i]), quantized)
        entry_next[f] += 1


@numba.njit(cache=True, nogil=True)
def find_node(nodes, first, last, node):
    """Return the first place in nodes[first:last], sorted, that is not smaller than node."""
    length = last - first
    while length > 0:
        half = length >> 1
        if nodes[first + half] < node:
            first += half + 1
            length -= half + 1
        else:
            length = half
    return first


@numba.njit(cache=True, nogil=True)
def sort_beam(nodes, scores, count):
    """Sort a beam by node."""
    for i in range(1, count):
        node, score, place = nodes[i], scores[i], i
        while place > 0 and nodes[place - 1] > node:
            nodes[place], scores[place] = nodes[place - 1], scores[place - 1]
            place -= 1
        nodes[place], scores[place] = node, score


@numba.njit(cache=True, nogil=True)
def log_score(margin, kind):
    """Return the logarithm of a node's own score: sigmoid (XMRED eq. 6), or PECOS's l3-hinge."""
    if kind == SIGMOID:
        if margin > _ZERO:
            return -np.log1p(np.exp(-margin))
        return margin - np.log1p(np.exp(margin))
    below = max(_ONE - margin, _ZERO)
    return -below * below * below


@numba.njit(cache=True, nogil=True)
def insert_best(nodes, scores, count, limit, node, score):
    """Insert into a list of the best, best first, the smaller node first; return its length."""
    if count == limit:
        if score < scores[count - 1] or (score == scores[count - 1] and node > nodes[count - 1]):
            return count
        place = count - 1
    else:
        place = count
        count += 1
    while place > 0 and (
        scores[place - 1] < score or (scores[place - 1] == score and nodes[place - 1] > node)
    ):
        nodes[place], scores[place] = nodes[place - 1], scores[place - 1]
        place -= 1
    nodes[place], scores[place] = node, score
    return count


@numba.njit(cache=True, nogil=True)
def search_layer(
    first_row, last_row, indptr, indices, data,
    beam_nodes, beam_scores, beam_counts,
    child_start, bias, scale, node_ptr, nodes, entry_starts, entries,
    kind, limit, out_nodes, out_scores, out_counts,
):  # fmt: skip
    """Go one level down: from the nodes in each row's beam to the best of their children.

    indptr, indices, data: The queries, CSR.
    beam_nodes (int32[n, beam]), beam_scores (float32[n, beam]), beam_counts (int32[n]): Where to
        start; scores are logarithms. The nodes are sorted on the way.
    out_nodes, out_scores, out_counts: The same for the children, best first.
    """
    widest = 0
    for node in range(child_start.shape[0] - 1):
        widest = max(widest, child_start[node + 1] - child_start[node])
    margins = np.empty(beam_nodes.shape[1] * widest, dtype=np.float32)
    offsets = np.empty(beam_nodes.shape[1] + 1, dtype=np.int64)
    for row in range(first_row, last_row):
        beam, scores, count = beam_nodes[row], beam_scores[row], beam_counts[row]
        sort_beam(beam, scores, count)
        offsets[0] = 0
        for i in range(count):
            offsets[i + 1] = offsets[i] + child_start[beam[i] + 1] - child_start[beam[i]]
        margins[: offsets[count]] = _ZERO
        for p in range(indptr[row], indptr[row + 1]):
            feature = np.int64(indices[p])
            first, last = np.int64(node_ptr[feature]), np.int64(node_ptr[feature + 1])
            value = data[p]
            for i in range(count):
                first = find_node(nodes, first, last, beam[i])
                if first >= last:
                    break
                if nodes[first] == beam[i]:
                    start, end = np.int64(entry_starts[first]), np.int64(entry_starts[first + 1])
                    for e in range(start, end):
                        entry = entries[e]
                        margins[offsets[i] + packed_child(entry)] += value * packed_value(entry)
                    first += 1
        found = 0
        for i in range(count):
            start = child_start[beam[i]]
            for j in range(offsets[i + 1] - offsets[i]):
                column = start + j
                margin = margins[offsets[i] + j] * scale[column] + bias[column]
                score = scores[i] + log_score(margin, kind)
                if found < limit or score >= out_scores[row, limit - 1]:
                    found = insert_best(
                        out_nodes[row], out_scores[row], found, limit, column, score
                    )
        out_counts[row] = found
