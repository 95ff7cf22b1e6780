"""Compiled code over the name index: hashing, the prefix filter, and names found in text.

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

# A text can continue to a name of at least n bytes only if its first n bytes begin some name.
PREFIX_LENGTHS = np.array([3, 5, 8, 12, 16, 24, 32, 48], dtype=np.int64)


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
def add_to_prefix_filter(ends, key_bytes, filter_words):
    """Set the bit of every prefix of every key of a block of keys, one after the other."""
    mask = np.uint64(filter_words.shape[0] * 64 - 1)
    start = np.int64(0)
    for key in range(ends.shape[0]):
        for prefix in PREFIX_LENGTHS:
            if start + prefix > ends[key]:
                break
            bit = hash_bytes(key_bytes, start, start + prefix, np.uint64(prefix)) & mask
            filter_words[np.int64(bit >> _SIX)] |= _ONE << (bit & _63)
        start = ends[key]


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
def squeeze_spaces(data, char_starts, char_ends, out, byte_starts, byte_ends):
    """Copy UTF-8 with each run of ASCII white space as one space; return the new length.

    The offsets of the tokens, in characters, are turned into offsets in bytes of the copy. A token
    that is nothing but white space ends where it starts.
    """
    tokens = char_starts.shape[0]
    character = -1
    size = 0
    after_space = True  # leading white space is dropped
    first = 0  # the next token to start
    last = 0  # the next token to end
    for position in range(data.shape[0]):
        byte = data[position]
        if byte & 0xC0 != 0x80:  # a new character
            character += 1
            while last < tokens and char_ends[last] <= character and last < first:
                byte_ends[last] = size - 1 if after_space and size > byte_starts[last] else size
                last += 1
            while first < tokens and char_starts[first] == character:
                byte_starts[first] = size
                first += 1
        is_space = byte == 32 or (9 <= byte <= 13) or (28 <= byte <= 31)
        if not is_space:
            out[size] = byte
            size += 1
        elif not after_space:
            out[size] = 32
            size += 1
        after_space = is_space
    while last < tokens:
        byte_ends[last] = size - 1 if after_space and size > byte_starts[last] else size
        last += 1
    return size


@numba.njit(cache=True, nogil=True)
def find_names(data, starts, ends, keys, directory, shift, filter_words, blocked, min_length, out):
    """Write (first token, last token + 1) of every name in the text; return how many there are.

    There may be more than out has room for: then only the first ones are written.

    data (uint8[:]): The text as squeeze_spaces leaves it.
    starts, ends (int64[:]): The tokens' offsets in data.
    blocked (uint8[:]): One entry per key: 1 for names not to find.
    min_length (int): The smallest number of characters of a name.
    out (int32[:, 2]): Room for the answer.
    """
    mask = np.uint64(filter_words.shape[0] * 64 - 1)
    size = data.shape[0]
    tokens = starts.shape[0]
    found = 0
    for token in range(tokens):
        start = starts[token]
        if ends[token] <= start:
            continue
        limit = size
        for prefix in PREFIX_LENGTHS:
            if start + prefix > size:
                break
            bit = hash_bytes(data, start, start + prefix, np.uint64(prefix)) & mask
            if (filter_words[np.int64(bit >> _SIX)] >> (bit & _63)) & _ONE == 0:
                limit = prefix - 1
                break
        for stop in range(token, tokens):
            end = ends[stop]
            if end - start > limit:
                break
            if end <= starts[stop]:
                continue
            key = find_hash(hash_bytes(data, start, end, _SEED), keys, directory, shift)
            if key < 0 or blocked[key]:
                continue
            length = 0
            for position in range(start, end):
                if data[position] & 0xC0 != 0x80:
                    length += 1
            if length < min_length:
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
