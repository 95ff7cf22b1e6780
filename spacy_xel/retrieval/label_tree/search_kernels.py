"""Compiled beam search through a label tree, and the layout of weights that it reads.

One look at a feature serves all children of all nodes in the beam. The weights of millions of
labels are in no cache: what will be read is asked for first, then read. Layout says what lies
where.
"""

import numba
import numpy as np

from spacy_xel.retrieval.label_tree.lanes import prefetch
from spacy_xel.retrieval.label_tree.layout import PAIR_BLOCK

_PAIR_BLOCK = np.uint64(PAIR_BLOCK)
_NODE = np.uint64(0xFFFFFFFF)
_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)
_LARGEST = np.float32(1e15)  # sums of squares of larger features overflow
L3_HINGE, SIGMOID = 0, 1
SOUND, UNSORTED, NOT_A_FEATURE, BROKEN = 0, 1, 2, 3


@numba.njit(cache=True, nogil=True)
def check_rows(indptr, indices, data, n_columns):
    """Return what is wrong with a CSR matrix, the worst of it."""
    size = min(indices.shape[0], data.shape[0])
    if indptr.shape[0] == 0 or indptr[0] != 0:
        return BROKEN
    worst = SOUND
    for row in range(indptr.shape[0] - 1):
        if indptr[row + 1] < indptr[row] or indptr[row + 1] > size:
            return BROKEN
        last = -1
        for p in range(indptr[row], indptr[row + 1]):
            if indices[p] < 0 or indices[p] >= n_columns:
                return BROKEN
            if not (data[p] >= _ZERO and data[p] <= _LARGEST):
                worst = NOT_A_FEATURE
            if indices[p] <= last:
                worst = max(worst, UNSORTED)
            last = indices[p]
    return worst


@numba.njit(cache=True, nogil=True)
def count_pairs(features, sizes, next_pair, next_word):
    """Add a node's pairs and words to the counts per feature, one place further on."""
    for i in range(features.shape[0]):
        next_pair[features[i] + 1] += 1
        next_word[features[i] + 1] += sizes[i]


@numba.njit(cache=True, nogil=True)
def fill_pairs(
    node, features, sizes, node_words, next_pair, next_word, pair_node, pair_size, words
):
    """Write a node's pairs and words where its features have theirs, and move on from there."""
    place = 0
    for i in range(features.shape[0]):
        feature = features[i]
        pair, word = next_pair[feature], next_word[feature]
        pair_node[pair] = node
        pair_size[pair] = sizes[i] - 1
        for j in range(sizes[i]):
            words[word + j] = node_words[place + j]
        place += sizes[i]
        next_pair[feature] = pair + 1
        next_word[feature] = word + sizes[i]


@numba.njit(cache=True, nogil=True)
def find_pair(pair_node, first, last, node):
    """Return the first place in pair_node[first:last], sorted, that is not below node."""
    length = last - first
    while length > 1:
        half = length >> 1
        # Without a branch, which would be guessed wrong half of the time.
        first = first + half if pair_node[first + half - 1] < node else first
        length -= half
    if length == 1 and pair_node[first] < node:
        first += 1
    return first


@numba.njit(cache=True, nogil=True)
def first_word(pair_size, word_start, pair):
    """Return where a pair's words begin."""
    block = np.uint64(pair) // _PAIR_BLOCK
    within = np.uint64(pair) % _PAIR_BLOCK
    first = block * _PAIR_BLOCK
    before = np.int32(0)
    for i in range(_PAIR_BLOCK):  # all, so that it takes a few vector instructions
        before += np.int32(pair_size[first + i]) * np.int32(i < within)
    return np.int64(word_start[block]) + np.int64(before) + np.int64(within)


@numba.njit(cache=True, nogil=True)
def sort_beam(nodes, losses, count):
    """Sort a beam by node."""
    for i in range(1, count):
        node, loss, place = nodes[i], losses[i], i
        while place > 0 and nodes[place - 1] > node:
            nodes[place], losses[place] = nodes[place - 1], losses[place - 1]
            place -= 1
        nodes[place], losses[place] = node, loss


@numba.njit(cache=True, nogil=True)
def best_first(losses, count, order):
    """Return the places of the first losses in ascending order; order is where to put them."""
    for i in range(count):
        place = i
        while place > 0 and losses[order[place - 1]] > losses[i]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = i
    return order[:count]


@numba.njit(cache=True, nogil=True)
def add_losses(margins, bias, scale, parent_loss, kind, losses):
    """Compute the losses of a node's children: the parent's, and their own.

    A loss is the negative logarithm of a score: of a product of sigmoids (XMRED eq. 6), or of
    PECOS's l3-hinge.

    margins (float32[n]): Without scale and bias.
    losses (float32[:]): The answer.
    """
    if kind == SIGMOID:
        for i in range(margins.shape[0]):
            margin = margins[i] * scale[i] + bias[i]
            losses[i] = parent_loss + np.log1p(np.exp(-abs(margin))) - min(margin, _ZERO)
    else:
        for i in range(margins.shape[0]):
            below = _ONE - (margins[i] * scale[i] + bias[i])
            below = _ZERO if below <= _ZERO else below
            losses[i] = parent_loss + below * below * below


@numba.njit(cache=True, nogil=True)
def make_key(loss_bits, node):
    """Return a number that is smaller for a better node, of two as good for the smaller one.

    loss_bits (uint32): The bits of the loss, a float32 that is not negative: they sort as it does.
    """
    return (np.uint64(loss_bits) << np.uint64(32)) | np.uint64(node)


@numba.njit(cache=True, nogil=True)
def insert_key(keys, count, limit, key):
    """Insert into a sorted list of at most limit keys, where it may be last; return its length."""
    place = count - 1 if count == limit else count
    while place > 0 and keys[place - 1] > key:
        keys[place] = keys[place - 1]
        place -= 1
    keys[place] = key
    return min(count + 1, limit)


@numba.njit(cache=True, nogil=True)
def has_features(data, start, end):
    """Tell whether any of data[start:end] is not 0."""
    return end > start and data[start:end].max() > _ZERO


@numba.njit(cache=True, nogil=True)
def find_hits(
    indices, data, start, end, first_feature, beam, count, first_node, n_nodes,
    pair_start, pair_node, pair_size, word_start, hit_pair, hit_place, hit_value, runs,
):  # fmt: skip
    """Find the pairs of a query's features with the nodes of its beam; return their number.

    beam (int64[:]), count: Nodes, sorted; first_node is the first of the n_nodes of their level.
    hit_pair (int64[:]), hit_place (int64[:]), hit_value (float32[:]): The answer: pairs, the
        node's places in the beam, and the features' values.
    runs (int64[3, :]): Scratch: where each feature's pairs begin and end, and its place.
    """
    n_runs = 0
    for p in range(start, end):
        feature = first_feature + np.int64(indices[p])
        first, last = np.int64(pair_start[feature]), np.int64(pair_start[feature + 1])
        if first < last:
            runs[0, n_runs], runs[1, n_runs], runs[2, n_runs] = first, last, p
            n_runs += 1
            prefetch(pair_node, first)
            prefetch(pair_node, first + (last - first) // 2)
    hits = 0
    for run in range(n_runs):
        first, last, value = runs[0, run], runs[1, run], data[runs[2, run]]
        start, absent = first, n_nodes - (last - first)
        previous = np.int64(0)
        for i in range(count):
            node = beam[i] - first_node
            # No more pairs lie between two nodes than nodes do, and no more nodes are missing
            # before this one than are missing in all.
            end_of_search = min(first + node - previous, last)
            first = max(first, min(start + node - absent, last))
            first = find_pair(pair_node, first, end_of_search, node)
            previous = node
            if first == last:
                break
            prefetch(pair_size, first)
            prefetch(word_start, first // PAIR_BLOCK)
            hit_pair[hits], hit_place[hits], hit_value[hits] = first, i, value
            is_hit = int(pair_node[first] == node)
            hits += is_hit
            first += is_hit
            previous += is_hit
    return hits


@numba.njit(cache=True, nogil=True)
def add_hits(
    hits, hit_pair, hit_place, hit_value, hit_word, offsets, pair_size, word_start, words, margins
):
    """Add the weights of hits, times the features' values, to the margins.

    offsets (int64[:]): Where the margins of each node of the beam begin.
    hit_word (int64[:]): Scratch.
    """
    for hit in range(hits):
        hit_word[hit] = first_word(pair_size, word_start, hit_pair[hit])
        prefetch(words, hit_word[hit])
    weights = words.view(np.int8)
    for hit in range(hits):
        value, first = hit_value[hit], hit_word[hit]
        offset = offsets[hit_place[hit]]
        n_children = offsets[hit_place[hit] + 1] - offset
        size = np.int64(pair_size[hit_pair[hit]]) + 1
        if size == (n_children + 1) // 2:
            for child in range(n_children):
                margins[offset + child] += value * np.float32(weights[2 * first + child])
        else:
            for word in words[first : first + size]:
                weight = np.float32(np.int8(word >> np.uint16(8)))
                margins[offset + np.int64(word & np.uint16(255))] += value * weight


@numba.njit(cache=True, nogil=True)
def search(
    first_row, last_row, indptr, indices, data, n_levels, dimension,
    level_start, child_start, bias, scale, pair_start, pair_node, pair_size, word_start, words,
    kind, width, last_width, out_nodes, out_scores, out_counts,
):  # fmt: skip
    """Search the tree for rows of queries, n_levels down.

    indptr, indices, data: The queries, CSR.
    width, last_width (int): How many nodes to keep on each level, and on the last.
    out_nodes (int32[n, last_width]), out_scores (float32[n, last_width]), out_counts (int32[n]):
        The answer, zero before; best first, numbers of nodes within the last level and
        logarithms of scores.
    """
    widest = 0
    for node in range(child_start.shape[0] - 1):
        widest = max(widest, child_start[node + 1] - child_start[node])
    longest = 0
    for row in range(first_row, last_row):
        longest = max(longest, indptr[row + 1] - indptr[row])
    room = max(width, last_width)
    beam, beam_losses = np.empty(room, np.int64), np.empty(room, np.float32)
    best = np.empty(room, np.uint64)
    order = np.empty(room, np.int64)
    offsets = np.empty(room + 1, np.int64)
    margins = np.empty(width * widest, np.float32)
    losses = np.empty(widest, np.float32)
    loss_bits = losses.view(np.uint32)
    one_loss = np.empty(1, np.float32)
    one_bits = one_loss.view(np.uint32)
    runs = np.empty((3, longest), np.int64)
    hit_pair = np.empty(longest * width + 1, np.int64)
    hit_place = np.empty(longest * width + 1, np.int64)
    hit_value = np.empty(longest * width + 1, np.float32)
    hit_word = np.empty(longest * width, np.int64)
    for row in range(first_row, last_row):
        if not has_features(data, indptr[row], indptr[row + 1]):
            continue  # it would get the same answer as any other without a known feature
        count = 1
        beam[0], beam_losses[0] = -1, _ZERO  # the root
        for level in range(n_levels):
            sort_beam(beam, beam_losses, count)
            offsets[0] = 0
            for i in range(count):
                n_children = child_start[beam[i] + 2] - child_start[beam[i] + 1]
                offsets[i + 1] = offsets[i] + n_children
            margins[: offsets[count]] = _ZERO
            first_node = level_start[level - 1] if level > 0 else np.int64(-1)
            n_nodes = level_start[level] - first_node if level > 0 else np.int64(1)
            hits = find_hits(
                indices, data, indptr[row], indptr[row + 1], level * dimension,
                beam, count, first_node, n_nodes,
                pair_start, pair_node, pair_size, word_start, hit_pair, hit_place, hit_value, runs,
            )  # fmt: skip
            add_hits(
                hits, hit_pair, hit_place, hit_value, hit_word, offsets,
                pair_size, word_start, words, margins,
            )  # fmt: skip
            limit = last_width if level == n_levels - 1 else width
            found = 0
            for i in best_first(beam_losses, count, order):
                one_loss[0] = beam_losses[i]
                if found == limit and make_key(one_bits[0], 0) > best[limit - 1]:
                    break  # a child's loss is never below its parent's
                first_child = np.int64(child_start[beam[i] + 1])
                last_child = np.int64(child_start[beam[i] + 2])
                add_losses(
                    margins[offsets[i] : offsets[i + 1]],
                    bias[first_child:last_child], scale[first_child:last_child],
                    beam_losses[i], kind, losses,
                )  # fmt: skip
                for j in range(last_child - first_child):
                    key = make_key(loss_bits[j], first_child + j)
                    if found < limit or key < best[limit - 1]:
                        found = insert_key(best, found, limit, key)
            for i in range(found):
                beam[i] = np.int64(best[i] & _NODE)
                one_bits[0] = best[i] >> np.uint64(32)
                beam_losses[i] = one_loss[0]
            count = found
        for i in range(count):
            out_nodes[row, i] = beam[i] - level_start[n_levels - 1]
            out_scores[row, i] = -beam_losses[i]
        out_counts[row] = count
