"""Compiled code that turns labels into vectors and splits them into two equal halves."""

import numba
import numpy as np

_ONE = np.uint64(1)


@numba.njit(cache=True, nogil=True)
def next_random(state):
    """Advance an xorshift generator; state is a uint64[1]."""
    value = state[0]
    value ^= value << np.uint64(13)
    value ^= value >> np.uint64(7)
    value ^= value << np.uint64(17)
    state[0] = value
    return value


@numba.njit(cache=True, nogil=True)
def aggregate_labels(
    first, last, label_ptr, label_rows, row_weight, indptr, indices, data, total, seen,
    lengths, out_indices, out_data,
):  # fmt: skip
    """Write the unit sums of the instances of labels first to last (PIFA, XMRED eq. 2).

    total (float32[dim]), seen (int32[dim], -1 at first): Scratch.
    lengths (int64[n_labels]): The number of features of each label: part of the answer.
    RETURNS (int): How many entries of out_indices and out_data were written.
    """
    size = 0
    for label in range(first, last):
        start = size
        for place in range(label_ptr[label], label_ptr[label + 1]):
            row = label_rows[place]
            for p in range(indptr[row], indptr[row + 1]):
                feature = indices[p]
                if seen[feature] != label:
                    seen[feature] = label
                    total[feature] = 0.0
                    out_indices[size] = feature
                    size += 1
                total[feature] += row_weight[row] * data[p]
        square = np.float32(0.0)
        for p in range(start, size):
            square += total[out_indices[p]] ** 2
        scale = np.float32(1.0) / np.sqrt(max(square, np.float32(1e-30)))
        for p in range(start, size):
            out_data[p] = total[out_indices[p]] * scale
        lengths[label] = size - start
    return size


@numba.njit(cache=True, nogil=True)
def add_vector(center, side, indices, data, start, end, sign):
    """Add a sparse vector to one of two interleaved centres; return how its square grew."""
    growth = np.float32(0.0)
    for p in range(start, end):
        place = 2 * np.int64(indices[p]) + side
        old = center[place]
        new = old + sign * data[p]
        center[place] = new
        growth += new * new - old * old
    return growth


@numba.njit(cache=True, nogil=True)
def split_in_half(labels, first, last, indptr, indices, data, max_iterations, seed, center):
    """Reorder labels[first:last] so that its two halves are the clusters of balanced 2-means.

    Spherical: a label goes to the centre with the larger cosine; balanced: the half with the
    larger differences goes to one side. Centres are updated by the labels that changed sides.

    center (float32[2 * dim]): Scratch, zero before and after.
    """
    count = last - first
    half = count // 2
    state = np.array([seed * 2654435761 + 88172645463325252], dtype=np.uint64)
    for _ in range(4):
        next_random(state)
    one = np.int64(next_random(state) % np.uint64(count))
    other = (one + 1 + np.int64(next_random(state) % np.uint64(count - 1))) % count
    side = np.full(count, -1, dtype=np.int8)
    score = np.empty(count, dtype=np.float32)
    norms = np.ones(2, dtype=np.float64)
    for pole, chosen in ((0, one), (1, other)):
        label = labels[first + chosen]
        add_vector(center, pole, indices, data, indptr[label], indptr[label + 1], np.float32(1.0))
    for iteration in range(max_iterations):
        scale0 = np.float32(1.0 / np.sqrt(max(norms[0], 1e-20)))
        scale1 = np.float32(1.0 / np.sqrt(max(norms[1], 1e-20)))
        for i in range(count):
            label = labels[first + i]
            near0 = np.float32(0.0)
            near1 = np.float32(0.0)
            for p in range(indptr[label], indptr[label + 1]):
                place = 2 * np.int64(indices[p])
                near0 += data[p] * center[place]
                near1 += data[p] * center[place + 1]
            score[i] = near1 * scale1 - near0 * scale0
            if not abs(score[i]) < np.inf:  # the halves must come out even whatever the numbers
                score[i] = 0.0
        threshold = np.partition(score.copy(), half)[half]
        ties_to_0 = half - np.count_nonzero(score < threshold)
        if iteration == 0:  # the centres so far were single labels
            for pole, chosen in ((0, one), (1, other)):
                label = labels[first + chosen]
                for p in range(indptr[label], indptr[label + 1]):
                    center[2 * np.int64(indices[p]) + pole] = 0.0
            norms[:] = 0.0
        changes = 0
        for i in range(count):
            new_side = 1
            if score[i] < threshold:
                new_side = 0
            elif score[i] == threshold and ties_to_0 > 0:
                new_side = 0
                ties_to_0 -= 1
            if new_side == side[i]:
                continue
            changes += 1
            label = labels[first + i]
            start, end = indptr[label], indptr[label + 1]
            if side[i] >= 0:
                norms[side[i]] += add_vector(
                    center, np.int64(side[i]), indices, data, start, end, np.float32(-1.0)
                )
            norms[new_side] += add_vector(
                center, np.int64(new_side), indices, data, start, end, np.float32(1.0)
            )
            side[i] = new_side
        if changes == 0:
            break
    for i in range(count):
        label = labels[first + i]
        for p in range(indptr[label], indptr[label + 1]):
            center[2 * np.int64(indices[p])] = 0.0
            center[2 * np.int64(indices[p]) + 1] = 0.0
    ordered = np.empty(count, dtype=labels.dtype)
    places = np.array([0, half])
    for i in range(count):
        ordered[places[side[i]]] = labels[first + i]
        places[side[i]] += 1
    labels[first:last] = ordered
