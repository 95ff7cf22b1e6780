"""Compiled code over the name index: hashes, the prefix filter, and names found in text.

One file holds the whole call graph, because Numba's cache on disk does not notice when a
callee in another file changes. Nothing here is parallel, so worker processes may be forked.
"""

import numba
import numpy as np

_M = np.uint64(0xC6A4A7935BD1E995)
_R = np.uint64(47)
_SEED = np.uint64(1)  # the seed of spaCy's StringStore
_ONE = np.uint64(1)
_SIX = np.uint64(6)
_63 = np.uint64(63)
_FNV_START = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x100000001B3)
_MIX = np.uint64(0x9E3779B97F4A7C15)

# A text can continue to a name of at least n bytes only if its first n bytes begin some name.
# The last number is the longest name that is looked for in text, in bytes.
PREFIX_LENGTHS = np.array(
    [3, 5, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512], dtype=np.int64
)


@numba.njit(cache=True, nogil=True)
def hash_bytes(data, start, end, seed):
    """Return MurmurHash64A of data[start:end]; with seed 1 it is spaCy's hash_string."""
    length = np.uint64(end - start)
    value = seed ^ (length * _M)
    position = start
    while position + 8 <= end:
        block = np.uint64(0)
        for offset in range(8):
            block |= np.uint64(data[position + offset]) << np.uint64(8 * offset)
        block *= _M
        block ^= block >> _R
        block *= _M
        value ^= block
        value *= _M
        position += 8
    if position < end:
        for offset in range(end - position):
            value ^= np.uint64(data[position + offset]) << np.uint64(8 * offset)
        value *= _M
    value ^= value >> _R
    value *= _M
    value ^= value >> _R
    return value


@numba.njit(cache=True, nogil=True)
def filter_bit(value, shift):
    """Return the place of a prefix in the filter: the leading bits of its hash, mixed."""
    return (value * _MIX) >> shift


@numba.njit(cache=True, nogil=True)
def add_to_prefix_filter(ends, key_bytes, filter_words):
    """Set the bit of every prefix of every key of a block of keys, one after the other."""
    shift = filter_shift(filter_words)
    start = np.int64(0)
    for key in range(ends.shape[0]):
        value = _FNV_START
        position = start
        for prefix in PREFIX_LENGTHS:
            if start + prefix > ends[key]:
                break
            while position < start + prefix:
                value = (value ^ np.uint64(key_bytes[position])) * _FNV_PRIME
                position += 1
            bit = filter_bit(value, shift)
            filter_words[np.int64(bit >> _SIX)] |= _ONE << (bit & _63)
        start = ends[key]


@numba.njit(cache=True, nogil=True)
def filter_shift(filter_words):
    """Return how far to shift a hash to be a place in the filter, whose size is a power of two."""
    bits = np.uint64(6)
    size = filter_words.shape[0]
    while size > 1:
        size >>= 1
        bits += _ONE
    return np.uint64(64) - bits


@numba.njit(cache=True, nogil=True)
def find_hash(value, keys, directory, shift):
    """Return the position of a hash in keys, or -1."""
    position = np.int64(directory[np.int64(value >> shift)])
    while position < keys.shape[0] - 1 and keys[position, 0] <= value:
        if keys[position, 0] == value:
            return position
        position += 1
    return np.int64(-1)


@numba.njit(cache=True, nogil=True)
def find_lines(data, keys, directory, shift, values):
    """Look up the keys that stand on the lines of data.

    values (int64[:, 2]): One row per line: the range of the key's values, or 0, 0.
    """
    start = 0
    for line in range(values.shape[0]):
        end = start
        while end < data.shape[0] and data[end] != 10:
            end += 1
        position = find_hash(hash_bytes(data, start, end, _SEED), keys, directory, shift)
        values[line, 0] = keys[position, 1] if position >= 0 else 0
        values[line, 1] = keys[position + 1, 1] if position >= 0 else 0
        start = end + 1


@numba.njit(cache=True, nogil=True)
def find_slots(keys, table_keys, table_slots, slots):
    """Look up keys in an open-addressed table; -1 for those that are not in it."""
    mask = np.uint64(table_keys.shape[0] - 1)
    for i in range(keys.shape[0]):
        place = keys[i] & mask
        while table_slots[np.int64(place)] >= 0 and table_keys[np.int64(place)] != keys[i]:
            place = (place + _ONE) & mask
        slots[i] = table_slots[np.int64(place)]


@numba.njit(cache=True, nogil=True)
def add_slots(keys, first_slot, table_keys, table_slots):
    """Add keys that are not in an open-addressed table, numbered from first_slot."""
    mask = np.uint64(table_keys.shape[0] - 1)
    for i in range(keys.shape[0]):
        place = keys[i] & mask
        while table_slots[np.int64(place)] >= 0:
            place = (place + _ONE) & mask
        table_keys[np.int64(place)] = keys[i]
        table_slots[np.int64(place)] = first_slot + i


@numba.njit(cache=True, nogil=True)
def join_forms(slots, spaces, form_starts, form_bytes, form_is_space, data, starts, ends):
    """Write tokens' normal forms one after the other, one space between words; return the length.

    slots (int32[:]): Per token the position of its form.
    spaces (uint64[:]): Per token whether white space follows.
    form_starts (int64[:]): Where each form starts in form_bytes; one more than there are forms.
    form_is_space (uint8[:]): Whether it is white space; others may be empty, like a soft hyphen.
    data (uint8[:]): The answer.
    starts, ends (int64[:]): Per token its place in data; equal for white space.
    """
    size = 0
    needs_space = False
    for token in range(slots.shape[0]):
        first = form_starts[slots[token]]
        last = form_starts[slots[token] + 1]
        if first == last:
            starts[token] = size
            ends[token] = size
            if form_is_space[slots[token]]:
                needs_space = True
            continue
        if needs_space and size > 0:
            data[size] = 32
            size += 1
        starts[token] = size
        for position in range(first, last):
            data[size] = form_bytes[position]
            size += 1
        ends[token] = size
        needs_space = spaces[token] != 0
    return size


@numba.njit(cache=True, nogil=True)
def longest_prefix(data, start, filter_words, shift):
    """Return how long a name that starts here can be at most."""
    value = _FNV_START
    position = start
    for prefix in PREFIX_LENGTHS:
        if start + prefix > data.shape[0]:
            break
        while position < start + prefix:
            value = (value ^ np.uint64(data[position])) * _FNV_PRIME
            position += 1
        bit = filter_bit(value, shift)
        if (filter_words[np.int64(bit >> _SIX)] >> (bit & _63)) & _ONE == 0:
            return prefix - 1
    return PREFIX_LENGTHS[-1]


@numba.njit(cache=True, nogil=True)
def count_characters(data, start, end):
    """Return the number of characters of UTF-8."""
    count = 0
    for position in range(start, end):
        if data[position] & 0xC0 != 0x80:
            count += 1
    return count


@numba.njit(cache=True, nogil=True)
def find_names(data, starts, ends, keys, directory, shift, filter_words, blocked, min_length, out):
    """Write (first token, last token + 1) of every name in the text; return how many there are.

    There may be more than out has room for: then only the first ones are written.

    data (uint8[:]), starts, ends (int64[:]): The text as join_forms leaves it.
    blocked (uint8[:]): One entry per key: 1 for names not to find.
    min_length (int): The smallest number of characters of a name.
    out (int32[:, 2]): Room for the answer.
    """
    prefix_shift = filter_shift(filter_words)
    tokens = starts.shape[0]
    found = 0
    for token in range(tokens):
        start = starts[token]
        if ends[token] == start:
            continue
        limit = longest_prefix(data, start, filter_words, prefix_shift)
        for stop in range(token, tokens):
            end = ends[stop]
            if end - start > limit:
                break
            if end == starts[stop]:
                continue
            key = find_hash(hash_bytes(data, start, end, _SEED), keys, directory, shift)
            if key < 0 or blocked[key] or count_characters(data, start, end) < min_length:
                continue
            if found < out.shape[0]:
                out[found, 0] = token
                out[found, 1] = stop + 1
            found += 1
    return found


@numba.njit(cache=True, nogil=True)
def keep_longest(spans, taken, kept):
    """Mark the spans to keep so that none overlap: longest first, then leftmost.

    spans (int32[:, 2]): Token offsets.
    taken (uint8[:]): One entry per token, 1 where no span may lie; changed in place.
    kept (uint8[:]): One entry per span: the answer.
    """
    tokens = taken.shape[0]
    order_keys = np.empty(spans.shape[0], dtype=np.int64)
    for i in range(spans.shape[0]):
        length = spans[i, 1] - spans[i, 0]
        order_keys[i] = np.int64(tokens - length) * np.int64(tokens + 1) + spans[i, 0]
    for i in np.argsort(order_keys, kind="mergesort"):
        free = True
        for token in range(spans[i, 0], spans[i, 1]):
            if taken[token]:
                free = False
                break
        if free:
            kept[i] = 1
            for token in range(spans[i, 0], spans[i, 1]):
                taken[token] = 1
