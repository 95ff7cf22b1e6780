"""Compiled training of rankers: one linear SVM per child of a node, sixteen siblings at a time.

Each child's problem is that of LIBLINEAR's dual coordinate descent; siblings share instances,
features and the order of updates, so one pass over an instance's features serves sixteen of them.
"""

import numba
import numpy as np

LANES = 16
_WIDTH = np.uint64(LANES)
_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)
_HUGE = np.float32(1e30)
_TINY = np.float32(1e-12)


@numba.njit(cache=True, nogil=True)
def collect_rows(bounds, label_ptr, label_rows, extra_rows, row_slot):
    """Return the instances of a node, sorted, and number them in row_slot.

    bounds (int64[n_children + 1]): Where the children's labels begin, in tree order.
    extra_rows (int32[:]): More negatives, such as what the matcher confuses with this node.
    row_slot (int32[n_rows]): Scratch, -1 before; the caller clears it with clear_rows.
    """
    first, last = label_ptr[bounds[0]], label_ptr[bounds[-1]]
    rows = np.empty(last - first + extra_rows.shape[0], dtype=np.int32)
    count = 0
    for place in range(first, last):
        row = label_rows[place]
        if row_slot[row] < 0:
            row_slot[row] = 0
            rows[count] = row
            count += 1
    for row in extra_rows:
        if row_slot[row] < 0:
            row_slot[row] = 0
            rows[count] = row
            count += 1
    rows = np.sort(rows[:count])
    for slot in range(count):
        row_slot[rows[slot]] = slot
    return rows


@numba.njit(cache=True, nogil=True)
def clear_slots(keys, slots):
    """Make scratch -1 again."""
    for key in keys:
        slots[key] = -1


@numba.njit(cache=True, nogil=True)
def localize_features(rows, indptr, indices, data, feature_slot):
    """Return a node's instances over the features they have: sorted features, and CSR arrays.

    feature_slot (int32[dim]): Scratch, -1 before; the caller clears it with clear_slots.
    """
    size = 0
    for row in rows:
        size += indptr[row + 1] - indptr[row]
    features = np.empty(min(size, feature_slot.shape[0]), dtype=np.int32)
    count = 0
    for row in rows:
        for p in range(indptr[row], indptr[row + 1]):
            feature = indices[p]
            if feature_slot[feature] < 0:
                feature_slot[feature] = 0
                features[count] = feature
                count += 1
    features = np.sort(features[:count])
    for slot in range(count):
        feature_slot[features[slot]] = slot
    local_ptr = np.empty(rows.shape[0] + 1, dtype=np.int64)
    local_indices = np.empty(size, dtype=np.uint32)
    local_data = np.empty(size, dtype=np.float32)
    square = np.empty(rows.shape[0], dtype=np.float32)
    filled = 0
    for slot in range(rows.shape[0]):
        local_ptr[slot] = filled
        total = _ZERO
        for p in range(indptr[rows[slot]], indptr[rows[slot] + 1]):
            local_indices[filled] = feature_slot[indices[p]]
            local_data[filled] = data[p]
            total += data[p] * data[p]
            filled += 1
        square[slot] = total
    local_ptr[rows.shape[0]] = filled
    return features, local_ptr, local_indices, local_data, square


@numba.njit(cache=True, nogil=True)
def set_targets(first_child, bounds, label_ptr, label_rows, label_values, row_slot, cost, target):
    """Write for up to LANES children how much each instance counts: > 0 for it, < 0 against it.

    cost (float32[n]): Per instance, C times its weight.
    target (float32[n * LANES]): The answer; 0 in lanes without a child.
    """
    children = min(LANES, bounds.shape[0] - 1 - first_child)
    for row in range(cost.shape[0]):
        for lane in range(LANES):
            target[row * LANES + lane] = -cost[row] if lane < children else _ZERO
    for lane in range(children):
        child = first_child + lane
        for place in range(label_ptr[bounds[child]], label_ptr[bounds[child + 1]]):
            slot = row_slot[label_rows[place]]
            # A soft target of several labels: the largest.
            place_of = slot * LANES + lane
            target[place_of] = max(target[place_of], label_values[place] * cost[slot])


@numba.njit(cache=True, nogil=True)
def shuffle(order, count, state):
    """Shuffle the first entries of order; state is a uint64[1]."""
    value = state[0]
    for last in range(count - 1, 0, -1):
        value ^= value << np.uint64(13)
        value ^= value >> np.uint64(7)
        value ^= value << np.uint64(17)
        chosen = np.int64((value >> np.uint64(32)) * np.uint64(last + 1) >> np.uint64(32))
        order[last], order[chosen] = order[chosen], order[last]
    state[0] = value


@numba.njit(cache=True, nogil=True, error_model="numpy")
def add_margins(weights, indices, data, start, end, margins):
    """Add to LANES margins the products of an instance with the weights."""
    for p in range(start, end):
        value = data[p]
        base = np.uint64(indices[p]) * _WIDTH
        for lane in range(_WIDTH):
            margins[lane] += value * weights[base + lane]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def add_steps(weights, indices, data, start, end, steps):
    """Add an instance to the weights, LANES times with different factors."""
    for p in range(start, end):
        value = data[p]
        base = np.uint64(indices[p]) * _WIDTH
        for lane in range(_WIDTH):
            weights[base + lane] += value * steps[lane]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def take_steps(margins, target, alpha, base, square, squared, projected, steps):
    """Compute LANES coordinate steps of one instance, without a branch.

    squared (float32): 1 for squared hinge loss, 0 for hinge loss.
    projected, steps (float32[LANES]): The projected gradients and the steps.
    RETURNS (float32): The largest projected gradient.
    """
    largest = _ZERO
    for lane in range(_WIDTH):
        cost = target[base + lane]
        sign = np.float32(cost > _ZERO) - np.float32(cost < _ZERO)
        cost = max(abs(cost), _TINY)
        diagonal = squared * np.float32(0.5) / cost
        limit = squared * _HUGE + cost
        old = alpha[base + lane]
        gradient = sign * margins[lane] - _ONE + diagonal * old
        # At a bound, only a gradient that leads inside counts (Hsieh et al. 2008, eq. 9).
        inside = np.float32((gradient < _ZERO) | (old > _ZERO))
        inside *= np.float32((gradient > _ZERO) | (old < limit))
        projected[lane] = gradient * inside * sign * sign
        new = old - gradient / (square + _ONE + diagonal)
        steps[lane] = (min(max(new, _ZERO), limit) - old) * sign
        largest = max(largest, abs(projected[lane]))
    return largest


@numba.njit(cache=True, nogil=True, error_model="numpy")
def descend(
    indptr, indices, data, square, target, squared, tolerance, max_passes, seed,
    weights, bias, alpha,
):  # fmt: skip
    """Solve LANES linear SVMs by dual coordinate descent.

    target (float32[n * LANES]): Costs, positive for the class and negative against it.
    squared (float32): 1 for squared hinge loss, 0 for hinge loss.
    tolerance (float32): Stop when the projected gradients differ by no more than this.
    weights (float32[n_features * LANES]), bias (float32[LANES]), alpha (float32[n * LANES]):
        The answer; zero before.
    """
    count = square.shape[0]
    order = np.arange(count)
    state = np.array([seed * 2654435761 + 88172645463325252], dtype=np.uint64)
    margins = np.empty(LANES, dtype=np.float32)
    steps = np.empty(LANES, dtype=np.float32)
    projected = np.empty(LANES, dtype=np.float32)
    highest = np.empty(LANES, dtype=np.float32)
    lowest = np.empty(LANES, dtype=np.float32)
    active = count
    # Updates that change nothing to speak of are not worth a pass over the features.
    negligible = np.float32(0.2) * tolerance
    for _ in range(max_passes):
        highest[:] = -_HUGE
        lowest[:] = _HUGE
        shuffle(order, active, state)
        kept = 0
        for place in range(active):
            row = order[place]
            base = np.uint64(row) * _WIDTH
            start, end = indptr[row], indptr[row + 1]
            margins[:] = bias
            add_margins(weights, indices, data, start, end, margins)
            largest = take_steps(
                margins, target, alpha, base, square[row], squared, projected, steps
            )
            for lane in range(_WIDTH):
                highest[lane] = max(highest[lane], projected[lane])
                lowest[lane] = min(lowest[lane], projected[lane])
            if largest > negligible:
                add_steps(weights, indices, data, start, end, steps)
                for lane in range(_WIDTH):
                    bias[lane] += steps[lane]
                    cost = target[base + lane]
                    alpha[base + lane] += steps[lane] * (
                        np.float32(cost > _ZERO) - np.float32(cost < _ZERO)
                    )
                if largest > np.float32(0.5) * tolerance:
                    order[place], order[kept] = order[kept], row
                    kept += 1
        converged = True
        for lane in range(LANES):
            if highest[lane] - lowest[lane] > tolerance:
                converged = False
        if converged and active == count:
            break
        # Only instances that still move, until they too have settled; then all once more.
        active = count if converged or kept == 0 else kept


@numba.njit(cache=True, nogil=True)
def count_weights(weights, children, threshold):
    """Return how many weights are large enough to keep."""
    count = 0
    for base in range(0, weights.shape[0], LANES):
        for lane in range(children):
            if abs(weights[base + lane]) >= threshold:
                count += 1
    return count


@numba.njit(cache=True, nogil=True)
def keep_weights(weights, children, first_child, threshold, features, child, feature, value):
    """Write the weights that are large enough, in the order of features."""
    count = 0
    for slot in range(features.shape[0]):
        for lane in range(children):
            weight = weights[slot * LANES + lane]
            if abs(weight) >= threshold:
                child[count] = first_child + lane
                feature[count] = features[slot]
                value[count] = weight
                count += 1


@numba.njit(cache=True, nogil=True)
def train_node(
    bounds, label_ptr, label_rows, label_values, extra_rows, indptr, indices, data, row_cost,
    squared, tolerance, max_passes, threshold, seed, row_slot, feature_slot,
):  # fmt: skip
    """Train the rankers of a node's children.

    RETURNS (tuple): Per kept weight its child, feature and value, sorted by feature, then child;
        and the children's biases.
    """
    rows = collect_rows(bounds, label_ptr, label_rows, extra_rows, row_slot)
    features, local_ptr, local_indices, local_data, square = localize_features(
        rows, indptr, indices, data, feature_slot
    )
    n_children = bounds.shape[0] - 1
    cost = np.empty(rows.shape[0], dtype=np.float32)
    for slot in range(rows.shape[0]):
        cost[slot] = row_cost[rows[slot]]
    blocks = (n_children + LANES - 1) // LANES
    target = np.empty(rows.shape[0] * LANES, dtype=np.float32)
    alpha = np.empty(rows.shape[0] * LANES, dtype=np.float32)
    weights = np.empty(features.shape[0] * LANES, dtype=np.float32)
    biases = np.empty(n_children, dtype=np.float32)
    bias = np.empty(LANES, dtype=np.float32)
    sizes = np.zeros(blocks + 1, dtype=np.int64)
    parts = []
    for block in range(blocks):
        first_child = block * LANES
        children = min(LANES, n_children - first_child)
        set_targets(
            first_child, bounds, label_ptr, label_rows, label_values, row_slot, cost, target
        )
        alpha[:] = 0.0
        weights[:] = 0.0
        bias[:] = 0.0
        descend(
            local_ptr, local_indices, local_data, square, target, squared, tolerance,
            max_passes, seed, weights, bias, alpha,
        )  # fmt: skip
        size = count_weights(weights, children, threshold)
        child = np.empty(size, dtype=np.uint8)
        feature = np.empty(size, dtype=np.int32)
        value = np.empty(size, dtype=np.float32)
        keep_weights(weights, children, first_child, threshold, features, child, feature, value)
        parts.append((child, feature, value))
        sizes[block + 1] = sizes[block] + size
        for lane in range(children):
            biases[first_child + lane] = bias[lane]
    child, feature, value = merge_parts(parts, sizes, features, feature_slot)
    clear_slots(rows, row_slot)
    clear_slots(features, feature_slot)
    return child, feature, value, biases


@numba.njit(cache=True, nogil=True)
def merge_parts(parts, sizes, features, feature_slot):
    """Bring the weights of a node's blocks together, sorted by feature, then child."""
    total = sizes[-1]
    starts = np.zeros(features.shape[0] + 1, dtype=np.int64)
    for part in parts:
        for feature in part[1]:
            starts[feature_slot[feature] + 1] += 1
    for slot in range(features.shape[0]):
        starts[slot + 1] += starts[slot]
    child = np.empty(total, dtype=np.uint8)
    feature = np.empty(total, dtype=np.int32)
    value = np.empty(total, dtype=np.float32)
    for part in parts:  # the blocks come in the order of children
        for i in range(part[0].shape[0]):
            slot = feature_slot[part[1][i]]
            place = starts[slot]
            starts[slot] += 1
            child[place] = part[0][i]
            feature[place] = part[1][i]
            value[place] = part[2][i]
    return child, feature, value
