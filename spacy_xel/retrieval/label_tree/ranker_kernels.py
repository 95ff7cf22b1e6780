"""Compiled training of rankers: one linear SVM per child of a node, sixteen siblings at a time.

Each child's problem is that of LIBLINEAR's dual coordinate descent; siblings share instances,
features and the order of updates, so one pass over an instance's features serves sixteen of them.
"""

import numba
import numpy as np

from spacy_xel.retrieval.label_tree.lanes import make_lane_functions

LANES = 16
_WIDTH = np.uint64(LANES)
_BIAS, _HIGHEST, _LOWEST = np.uint64(LANES), np.uint64(2 * LANES), np.uint64(3 * LANES)
add_products, add_multiples = make_lane_functions(LANES)
_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)
_HUGE = np.float32(1e30)
_TINY = np.float32(1e-12)
_NO_DATA = np.float32(-100)  # the bias of a child without an instance: behind all others
_UNSEEN, _SINGLE, _SHARED = -1, -2, -3
_LARGEST_BYTE = np.float32(127)


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
    """Return a node's instances over the features that they share, and the rest apart.

    A feature of one instance only needs no weight while training: its weight is a multiple of
    that instance's dual variable, and adds its square to the diagonal.

    feature_slot (int32[dim]): Scratch, -1 before and after.
    RETURNS (tuple): The shared features; the instances over them (CSR); their other features
        (CSR, with the features' own numbers); the squares of all, and of the other features.
    """
    count = rows.shape[0]
    size, n_single, n_shared = 0, 0, 0
    for row in rows:
        size += indptr[row + 1] - indptr[row]
        for p in range(indptr[row], indptr[row + 1]):
            if feature_slot[indices[p]] == _UNSEEN:
                feature_slot[indices[p]] = _SINGLE
                n_single += 1
            elif feature_slot[indices[p]] == _SINGLE:
                feature_slot[indices[p]] = _SHARED
                n_single -= 1
                n_shared += 1
    features = np.empty(n_shared, dtype=np.int32)
    shared_ptr = np.zeros(count + 1, dtype=np.int64)
    shared_slots = np.empty(size - n_single, dtype=np.uint32)
    shared_data = np.empty(size - n_single, dtype=np.float32)
    single_ptr = np.zeros(count + 1, dtype=np.int64)
    single_features = np.empty(n_single, dtype=np.int32)
    single_data = np.empty(n_single, dtype=np.float32)
    square = np.zeros(count, dtype=np.float32)
    single_square = np.zeros(count, dtype=np.float32)
    known, shared, single = 0, 0, 0
    for i in range(count):
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            feature, value = indices[p], data[p]
            slot = feature_slot[feature]
            square[i] += value * value
            if slot == _SINGLE:
                single_features[single] = feature
                single_data[single] = value
                single_square[i] += value * value
                single += 1
                continue
            if slot == _SHARED:
                slot = known
                feature_slot[feature] = slot
                features[slot] = feature
                known += 1
            shared_slots[shared] = slot
            shared_data[shared] = value
            shared += 1
        shared_ptr[i + 1] = shared
        single_ptr[i + 1] = single
    clear_slots(features, feature_slot)
    clear_slots(single_features, feature_slot)
    return (
        features, shared_ptr, shared_slots, shared_data,
        single_ptr, single_features, single_data, square, single_square,
    )  # fmt: skip


@numba.njit(cache=True, nogil=True)
def set_targets(first_child, bounds, label_ptr, label_rows, label_values, row_slot, cost, dual):
    """Write for up to LANES children how much each instance counts: > 0 for it, < 0 against it.

    cost (float32[n]): Per instance, C times its weight.
    dual (float32[n * 2 * LANES]): The answer, 0 in lanes without a child, and dual variables 0.
    """
    children = min(LANES, bounds.shape[0] - 1 - first_child)
    for row in range(cost.shape[0]):
        base = row * 2 * LANES
        for lane in range(LANES):
            dual[base + lane] = -cost[row] if lane < children else _ZERO
            dual[base + LANES + lane] = _ZERO
    for lane in range(children):
        child = first_child + lane
        for place in range(label_ptr[bounds[child]], label_ptr[bounds[child + 1]]):
            slot = row_slot[label_rows[place]]
            # A soft target of several labels: the largest.
            place_of = slot * 2 * LANES + lane
            dual[place_of] = max(dual[place_of], label_values[place] * cost[slot])


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
def find_steps(dual, base, square, single_square, squared, negligible, work):
    """Compute the coordinate steps of one instance for LANES children, without a branch.

    dual (float32[:]): From base on LANES signed costs, then LANES dual variables.
    square, single_square (float32): Of the instance: all its features, those that no other has.
    squared (float32): 1 for squared hinge loss, 0 for hinge loss.
    work (float32[4 * LANES]): Margins without bias, which become the steps; biases; the highest
        and the lowest projected gradients so far, which are updated.
    RETURNS (tuple): In how many lanes there is a step to speak of, and in how many a large one.
    """
    to_take = np.int32(0)
    large = np.int32(0)
    for lane in range(_WIDTH):
        cost = dual[base + lane]
        old = dual[base + _WIDTH + lane]
        sign = np.float32(cost > _ZERO) - np.float32(cost < _ZERO)
        cost = abs(cost) + _TINY
        diagonal = squared * np.float32(0.5) / cost
        limit = squared * _HUGE + cost
        margin = work[lane] + work[_BIAS + lane]
        gradient = sign * margin - _ONE + (diagonal + single_square) * old
        # At a bound, only a gradient that leads inside counts (Hsieh et al. 2008, eq. 9).
        inside = ((gradient < _ZERO) | (old > _ZERO)) & ((gradient > _ZERO) | (old < limit))
        projected = gradient * np.float32(inside) * sign * sign
        to_take += np.int32(abs(projected) > negligible)
        large += np.int32(abs(projected) > np.float32(2.5) * negligible)
        highest, lowest = work[_HIGHEST + lane], work[_LOWEST + lane]
        work[_HIGHEST + lane] = projected if projected > highest else highest
        work[_LOWEST + lane] = projected if projected < lowest else lowest
        new = old - gradient / (square + _ONE + diagonal)
        new = new if new > _ZERO else _ZERO
        new = new if new < limit else limit
        work[lane] = (new - old) * sign
    return to_take, large


@numba.njit(cache=True, nogil=True, error_model="numpy")
def take_steps(dual, base, work):
    """Add the steps that find_steps left in work to the dual variables and the biases."""
    for lane in range(_WIDTH):
        cost = dual[base + lane]
        sign = np.float32(cost > _ZERO) - np.float32(cost < _ZERO)
        dual[base + _WIDTH + lane] += work[lane] * sign
        work[_BIAS + lane] += work[lane]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def descend(
    indptr, indices, data, square, single_square, dual, squared, tolerance, max_passes, seed,
    weights, bias,
):  # fmt: skip
    """Solve LANES linear SVMs by dual coordinate descent.

    dual (float32[n * 2 * LANES]): Per instance LANES costs, positive for the class and negative
        against it, and LANES dual variables, zero before.
    squared (float32): 1 for squared hinge loss, 0 for hinge loss.
    tolerance (float32): Stop when the projected gradients differ by no more than this.
    weights (float32[n_features * LANES]), bias (float32[LANES]): The answer; zero before.
    """
    count = square.shape[0]
    order = np.arange(count)
    state = np.array([seed * 2654435761 + 88172645463325252], dtype=np.uint64)
    work = np.zeros(4 * LANES, dtype=np.float32)
    active = count
    # Updates that change nothing to speak of are not worth a pass over the features.
    negligible = np.float32(0.2) * tolerance
    for _ in range(max_passes):
        work[_HIGHEST:_LOWEST] = -_HUGE
        work[_LOWEST:] = _HUGE
        shuffle(order, active, state)
        kept = 0
        for place in range(active):
            row = order[place]
            base = np.uint64(row) * np.uint64(2) * _WIDTH
            start, end = indptr[row], indptr[row + 1]
            work[:LANES] = _ZERO
            add_products(weights, indices, data, start, end, work)
            to_take, large = find_steps(
                dual, base, square[row], single_square[row], squared, negligible, work
            )
            if to_take > 0:
                add_multiples(weights, indices, data, start, end, work)
                take_steps(dual, base, work)
                if large > 0:
                    order[place], order[kept] = order[kept], row
                    kept += 1
        converged = True
        for lane in range(_WIDTH):
            if work[_HIGHEST + lane] - work[_LOWEST + lane] > tolerance:
                converged = False
        if converged and active == count:
            break
        # Only instances that still move, until they too have settled; then all once more.
        active = count if converged or kept == 0 else kept
    bias[:] = work[_BIAS:_HIGHEST]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def count_large(values, base, factor, threshold):
    """Return how many of LANES values, times a factor, are not below the threshold."""
    count = np.int32(0)
    for lane in range(_WIDTH):
        count += np.int32(abs(values[base + lane]) * factor >= threshold)
    return count


@numba.njit(cache=True, nogil=True)
def signed_dual(dual, base):
    """Return LANES dual variables of an instance, negative where it is one against the class."""
    signed = np.empty(LANES, dtype=np.float32)
    for lane in range(LANES):
        cost = dual[base + lane]
        sign = np.float32(cost > _ZERO) - np.float32(cost < _ZERO)
        signed[lane] = sign * dual[base + LANES + lane]
    return signed


@numba.njit(cache=True, nogil=True)
def keep_weights(
    weights, dual, features, single_ptr, single_features, single_data, n_children, threshold
):
    """Return the weights that are large enough, feature by feature, and each child's largest.

    weights (float32[blocks, n_features * LANES]): Of features that instances share.
    dual (float32[blocks, n * 2 * LANES]): What the weights of the other features follow from.
    RETURNS (tuple): The features; how many weights each has; per weight its child and value; per
        child its largest weight.
    """
    blocks, n_rows = weights.shape[0], single_ptr.shape[0] - 1
    strongest = np.zeros(n_rows, dtype=np.float32)
    for i in range(n_rows):
        for p in range(single_ptr[i], single_ptr[i + 1]):
            strongest[i] = max(strongest[i], single_data[p])
    room = 0
    for block in range(blocks):
        for slot in range(features.shape[0]):
            room += count_large(weights[block], np.uint64(slot) * _WIDTH, _ONE, threshold)
        for i in range(n_rows):
            base = np.uint64(2 * i + 1) * _WIDTH
            large = count_large(dual[block], base, strongest[i], threshold)
            room += large * (single_ptr[i + 1] - single_ptr[i])
    kept = np.empty(room, dtype=np.int32)
    counts = np.empty(room, dtype=np.int16)
    child = np.empty(room, dtype=np.uint8)
    value = np.empty(room, dtype=np.float32)
    largest = np.zeros(n_children, dtype=np.float32)
    n_kept, size = 0, 0
    for slot in range(features.shape[0]):
        first = size
        for block in range(blocks):
            base = np.uint64(slot) * _WIDTH
            if count_large(weights[block], base, _ONE, threshold) > 0:
                row = weights[block, slot * LANES : (slot + 1) * LANES]
                size = keep_large(row, _ONE, threshold, block, child, value, size, largest)
        if size > first:
            kept[n_kept], counts[n_kept] = features[slot], size - first
            n_kept += 1
    signed = np.empty((blocks, LANES), dtype=np.float32)
    for i in range(n_rows):
        any_large = np.int32(0)
        for block in range(blocks):
            base = np.uint64(2 * i + 1) * _WIDTH
            any_large += count_large(dual[block], base, strongest[i], threshold)
        if any_large == 0:
            continue
        for block in range(blocks):
            signed[block] = signed_dual(dual[block], 2 * i * LANES)
        for p in range(single_ptr[i], single_ptr[i + 1]):
            first = size
            for block in range(blocks):
                size = keep_large(
                    signed[block], single_data[p], threshold, block, child, value, size, largest
                )
            if size > first:
                kept[n_kept], counts[n_kept] = single_features[p], size - first
                n_kept += 1
    return kept[:n_kept].copy(), counts[:n_kept].copy(), child[:size], value[:size], largest


@numba.njit(cache=True, nogil=True)
def keep_large(row, factor, threshold, block, child, value, size, largest):
    """Append those of a row's LANES weights that are large enough; return the new size."""
    for lane in range(LANES):
        weight = row[lane] * factor
        if abs(weight) >= threshold and block * LANES + lane < largest.shape[0]:
            child[size] = block * LANES + lane
            value[size] = weight
            largest[child[size]] = max(largest[child[size]], abs(weight))
            size += 1
    return size


@numba.njit(cache=True, nogil=True)
def train_node(
    bounds, label_ptr, label_rows, label_values, extra_rows, indptr, indices, data, row_cost,
    squared, tolerance, max_passes, threshold, seed, row_slot, feature_slot,
):  # fmt: skip
    """Train the rankers of a node's children.

    RETURNS (tuple): The fields of NodeWeights.
    """
    rows = collect_rows(bounds, label_ptr, label_rows, extra_rows, row_slot)
    features, shared_ptr, shared_slots, shared_data, single_ptr, single_features, single_data, square, single_square = localize_features(rows, indptr, indices, data, feature_slot)  # fmt: skip # noqa: E501
    n_children = bounds.shape[0] - 1
    cost = np.empty(rows.shape[0], dtype=np.float32)
    for slot in range(rows.shape[0]):
        cost[slot] = row_cost[rows[slot]]
    blocks = (n_children + LANES - 1) // LANES
    dual = np.empty((blocks, rows.shape[0] * 2 * LANES), dtype=np.float32)
    weights = np.zeros((blocks, features.shape[0] * LANES), dtype=np.float32)
    bias = np.empty((blocks, LANES), dtype=np.float32)
    for block in range(blocks):
        set_targets(
            block * LANES, bounds, label_ptr, label_rows, label_values, row_slot, cost, dual[block]
        )
        descend(
            shared_ptr, shared_slots, shared_data, square, single_square, dual[block],
            squared, tolerance, max_passes, seed, weights[block], bias[block],
        )  # fmt: skip
    clear_slots(rows, row_slot)
    biases = bias.ravel()[:n_children].copy()
    for child in range(n_children):
        if label_ptr[bounds[child]] == label_ptr[bounds[child + 1]]:
            biases[child] = _NO_DATA
    kept, counts, child, value, scale = keep_weights(
        weights, dual, features, single_ptr, single_features, single_data, n_children, threshold
    )
    for i in range(n_children):
        scale[i] = scale[i] / _LARGEST_BYTE if scale[i] > _ZERO else _ONE
    sizes, words = pack_weights(counts, child, value, scale)
    return kept, sizes, words, biases, scale


@numba.njit(cache=True, nogil=True)
def pack_weights(counts, child, value, scale):
    """Write weights as 16-bit words, feature by feature, as Layout describes.

    RETURNS (tuple): How many words each feature has, and the words.
    """
    n_children = scale.shape[0]
    full = (n_children + 1) // 2
    sizes = np.minimum(counts, full)
    words = np.zeros(sizes.sum(), dtype=np.uint16)
    first, place = 0, 0
    for i in range(counts.shape[0]):
        for entry in range(first, first + counts[i]):
            column = np.int32(child[entry])
            byte = np.int32(np.rint(value[entry] / scale[column])) & 255
            if sizes[i] < full:
                words[place + entry - first] = np.uint16((byte << 8) | column)
            else:
                words[place + column // 2] |= np.uint16(byte << (8 * (column % 2)))
        first += counts[i]
        place += sizes[i]
    return sizes, words
