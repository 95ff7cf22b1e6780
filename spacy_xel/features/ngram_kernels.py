"""Compiled n-gram hashing and counting.

A query becomes the 64-bit hashes of its n-grams. The two lowest bits of a hash are the kind of the
n-gram, so that kinds never meet and one sorted run of hashes per query is enough.
"""

import numba
import numpy as np

from spacy_xel.features.ngrams import (
    CONTEXT_WORDS,
    MENTION_CHARACTERS,
    MENTION_NAME,
    MENTION_WORDS,
)

_START = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)
_KIND = np.uint64(3)
_FREE = np.uint64(0xFFFFFFFF)


@numba.njit(cache=True, nogil=True)
def finish_hash(value):
    """Mix the bits of a hash."""
    value ^= value >> np.uint64(32)
    value *= _MIX
    value ^= value >> np.uint64(29)
    return value


@numba.njit(cache=True, nogil=True)
def tag_hash(value, kind):
    """Return a hash with its kind in the lowest bits."""
    return (value & ~_KIND) | np.uint64(kind)


@numba.njit(cache=True, nogil=True)
def is_word_byte(byte):
    """Tell whether a byte of UTF-8 is part of a word: letters, digits, all beyond ASCII."""
    return byte >= 128 or 48 <= byte <= 57 or 97 <= byte <= 122 or 65 <= byte <= 90


@numba.njit(cache=True, nogil=True)
def hash_words(data, start, end, kind, longest, stem, out, size):
    """Append the hashes of the word n-grams of data[start:end], n from 1 to longest.

    stem (int): Words with more characters also give the hash of their first ones; 0 for none.
    RETURNS (int): The new size of out.
    """
    previous = np.zeros(longest, dtype=np.uint64)
    words = 0
    position = start
    while position < end:
        if not is_word_byte(data[position]):
            position += 1
            continue
        value = _START
        characters = 0
        while position < end and is_word_byte(data[position]):
            if data[position] & 0xC0 != 0x80:
                if characters == stem and stem > 0:
                    out[size] = tag_hash(finish_hash(value ^ _MIX), kind)
                    size += 1
                characters += 1
            value = (value ^ np.uint64(data[position])) * _PRIME
            position += 1
        word = finish_hash(value)
        for i in range(longest - 1, 0, -1):
            previous[i] = previous[i - 1]
        previous[0] = word
        words += 1
        total = np.uint64(0)
        for n in range(min(longest, words)):
            total = finish_hash(total * _PRIME + previous[n] + _ONE)
            out[size] = tag_hash(total, kind)
            size += 1
    return size


@numba.njit(cache=True, nogil=True)
def hash_characters(data, start, end, kind, shortest, longest, out, size):
    """Append the hashes of the character n-grams of data[start:end].

    RETURNS (int): The new size of out.
    """
    for first in range(start, end):
        if data[first] & 0xC0 == 0x80:  # within a character
            continue
        value = _START
        length = 0
        position = first
        while position < end and length < longest:
            value = (value ^ np.uint64(data[position])) * _PRIME
            position += 1
            while position < end and data[position] & 0xC0 == 0x80:
                value = (value ^ np.uint64(data[position])) * _PRIME
                position += 1
            length += 1
            if length >= shortest:
                out[size] = tag_hash(finish_hash(value), kind)
                size += 1
    return size


@numba.njit(cache=True, nogil=True)
def hash_name(data, start, end, kind, out, size):
    """Append one hash of all of data[start:end], if there is anything; return the new size."""
    if start == end:
        return size
    value = _START
    for position in range(start, end):
        value = (value ^ np.uint64(data[position])) * _PRIME
    out[size] = tag_hash(finish_hash(value), kind)
    return size + 1


@numba.njit(cache=True, nogil=True)
def hash_rows(
    mentions, mention_ends, contexts, context_ends, weights, longest_words, stem,
    shortest, longest, out, row_ends,
):  # fmt: skip
    """Write the n-gram hashes of many queries, one after the other, sorted within each query.

    mentions, contexts (uint8[:]): UTF-8, a space before each and after the last.
    mention_ends, context_ends (int64[n]): Where each ends.
    weights (float32[4]): By kind; those with 0 are left out.
    row_ends (int64[n]): Where each query's hashes end: part of the answer.
    """
    size = 0
    start, context_start = 1, 1
    for row in range(mention_ends.shape[0]):
        first, end = size, mention_ends[row]
        if weights[MENTION_WORDS] > 0:
            size = hash_words(mentions, start, end, MENTION_WORDS, longest_words, 0, out, size)
        if weights[MENTION_CHARACTERS] > 0:
            size = hash_characters(
                mentions, start - 1, end + 1, MENTION_CHARACTERS, shortest, longest, out, size
            )
        if weights[MENTION_NAME] > 0:
            size = hash_name(mentions, start, end, MENTION_NAME, out, size)
        if weights[CONTEXT_WORDS] > 0:
            context_end = context_ends[row]
            size = hash_words(
                contexts, context_start, context_end, CONTEXT_WORDS, longest_words, stem, out, size
            )
            context_start = context_end + 1
        out[first:size].sort()
        row_ends[row] = size
        start = end + 1
    return size


@numba.njit(cache=True, nogil=True)
def unique_in_rows(hashes, row_ends):
    """Keep each hash once per row, in place; return the new size. row_ends is changed too."""
    size = 0
    start = 0
    for row in range(row_ends.shape[0]):
        end = row_ends[row]
        for p in range(start, end):
            if p == start or hashes[p] != hashes[p - 1]:
                hashes[size] = hashes[p]
                size += 1
        start = end
        row_ends[row] = size
    return size


@numba.njit(cache=True, nogil=True)
def count_hashes(hashes, keys, counts):
    """Count hashes in an open-addressed table with room for all; return how many are new.

    keys (uint64[size]), counts (int32[size]): The table; a count of 0 is a free place.
    """
    mask = np.uint64(keys.shape[0] - 1)
    new = 0
    for value in hashes:
        place = table_place(value, mask)
        while counts[place] > 0 and keys[place] != value:
            place = (place + _ONE) & mask
        new += int(counts[place] == 0)
        keys[place] = value
        counts[place] += 1
    return new


@numba.njit(cache=True, nogil=True)
def move_counts(old_keys, old_counts, keys, counts):
    """Put the counts of a table into a larger one."""
    mask = np.uint64(keys.shape[0] - 1)
    for i in range(old_keys.shape[0]):
        if old_counts[i] == 0:
            continue
        place = table_place(old_keys[i], mask)
        while counts[place] > 0:
            place = (place + _ONE) & mask
        keys[place] = old_keys[i]
        counts[place] = old_counts[i]


@numba.njit(cache=True, nogil=True)
def table_place(value, mask):
    """Return where the search for a hash begins; the lowest bits say little."""
    return (value >> np.uint64(2)) & mask


@numba.njit(cache=True, nogil=True)
def find_column(table, value):
    """Return the column of a hash, or -1.

    table (uint64[size, 2]): Open addressing: hash and column, _FREE where there is none.
    """
    mask = np.uint64(table.shape[0] - 1)
    place = table_place(value, mask)
    while table[place, 1] != _FREE:
        if table[place, 0] == value:
            return np.int32(table[place, 1])
        place = (place + _ONE) & mask
    return np.int32(-1)


@numba.njit(cache=True, nogil=True)
def fill_table(vocabulary, table):
    """Put a vocabulary into a table that find_column reads."""
    mask = np.uint64(table.shape[0] - 1)
    table[:, 1] = _FREE
    for column in range(vocabulary.shape[0]):
        place = table_place(vocabulary[column], mask)
        while table[place, 1] != _FREE:
            place = (place + _ONE) & mask
        table[place, 0] = vocabulary[column]
        table[place, 1] = column


@numba.njit(cache=True, nogil=True)
def weigh_rows(hashes, row_ends, table, idf, weights, columns, values, lengths):
    """Turn sorted hashes into tf-idf vectors; each kind's part of a row gets the kind's length.

    weights (float32[4]): The lengths by kind.
    columns (int32[:]), values (float32[:]), lengths (int64[n]): The answer; columns ascend.
    RETURNS (int): How many entries were written.
    """
    squares = np.empty(4, dtype=np.float32)
    kinds = np.empty(hashes.shape[0], dtype=np.uint8)
    size = 0
    start = 0
    for row in range(row_ends.shape[0]):
        first = size
        end = row_ends[row]
        squares[:] = 0.0
        p = start
        while p < end:
            value = hashes[p]
            count = 1
            while p + count < end and hashes[p + count] == value:
                count += 1
            p += count
            column = find_column(table, value)
            if column >= 0:
                weight = idf[column]
                if count > 1:
                    weight *= np.float32(1.0 + np.log(count))
                columns[size] = column
                values[size] = weight
                kinds[size - first] = value & _KIND
                squares[kinds[size - first]] += weight * weight
                size += 1
        for kind in range(4):
            if squares[kind] > 0:
                squares[kind] = weights[kind] / np.sqrt(squares[kind])
        for q in range(first, size):
            values[q] *= squares[kinds[q - first]]
        lengths[row] = size - first
        start = end
    return size
