"""Compiled n-gram hashing and counting.

A text becomes the 64-bit hashes of its n-grams; n-grams of different kinds (words of the mention,
words of the context, characters of the mention) start from different seeds, so they never meet.
"""

import numba
import numpy as np

_START = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)


@numba.njit(cache=True, nogil=True)
def finish_hash(value):
    """Mix the bits of a hash."""
    value ^= value >> np.uint64(32)
    value *= _MIX
    value ^= value >> np.uint64(29)
    return value


@numba.njit(cache=True, nogil=True)
def is_word_byte(byte):
    """Tell whether a byte of UTF-8 is part of a word: letters, digits, all beyond ASCII."""
    return byte >= 128 or 48 <= byte <= 57 or 97 <= byte <= 122 or 65 <= byte <= 90


@numba.njit(cache=True, nogil=True)
def hash_words(data, start, end, seed, longest, out, size):
    """Append the hashes of the word n-grams of data[start:end], n from 1 to longest.

    RETURNS (int): The new size of out.
    """
    previous = np.zeros(8, dtype=np.uint64)
    words = 0
    position = start
    while position < end:
        if not is_word_byte(data[position]):
            position += 1
            continue
        value = _START ^ (seed * _MIX)
        while position < end and is_word_byte(data[position]):
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
            out[size] = total
            size += 1
    return size


@numba.njit(cache=True, nogil=True)
def hash_characters(data, start, end, seed, shortest, longest, out, size):
    """Append the hashes of the character n-grams of data[start:end].

    RETURNS (int): The new size of out.
    """
    for first in range(start, end):
        if data[first] & 0xC0 == 0x80:  # within a character
            continue
        value = _START ^ (seed * _MIX)
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
                out[size] = finish_hash(value)
                size += 1
    return size


@numba.njit(cache=True, nogil=True)
def hash_rows(data, starts, ends, kind, seed, shortest, longest, out, row_ends):
    """Write the n-gram hashes of many texts, one after the other, sorted within each text.

    kind (int): 0 for words, 1 for characters.
    row_ends (int64[n]): Where each text's hashes end: part of the answer.
    """
    size = 0
    for row in range(starts.shape[0]):
        first = size
        if kind == 0:
            size = hash_words(data, starts[row], ends[row], seed, longest, out, size)
        else:
            size = hash_characters(data, starts[row], ends[row], seed, shortest, longest, out, size)
        out[first:size].sort()
        row_ends[row] = size
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
def find_column(table_hashes, table_columns, value):
    """Return the column of a hash, or -1; open addressing, columns -1 where free."""
    mask = np.uint64(table_hashes.shape[0] - 1)
    place = value & mask
    while table_columns[np.int64(place)] >= 0:
        if table_hashes[np.int64(place)] == value:
            return table_columns[np.int64(place)]
        place = (place + _ONE) & mask
    return np.int32(-1)


@numba.njit(cache=True, nogil=True)
def fill_table(vocabulary, table_hashes, table_columns):
    """Put a vocabulary into an open-addressed table."""
    mask = np.uint64(table_hashes.shape[0] - 1)
    for column in range(vocabulary.shape[0]):
        place = vocabulary[column] & mask
        while table_columns[np.int64(place)] >= 0:
            place = (place + _ONE) & mask
        table_hashes[np.int64(place)] = vocabulary[column]
        table_columns[np.int64(place)] = column


@numba.njit(cache=True, nogil=True)
def weigh_rows(
    hashes, row_ends, table_hashes, table_columns, idf, factor, columns, values, lengths
):
    """Turn sorted hashes into tf-idf vectors of length factor.

    columns (int32[:]), values (float32[:]), lengths (int64[n]): The answer.
    RETURNS (int): How many entries were written.
    """
    size = 0
    start = 0
    for row in range(row_ends.shape[0]):
        first = size
        end = row_ends[row]
        square = np.float32(0.0)
        p = start
        while p < end:
            count = 1
            while p + count < end and hashes[p + count] == hashes[p]:
                count += 1
            column = find_column(table_hashes, table_columns, hashes[p])
            if column >= 0:
                value = np.float32((1.0 + np.log(count)) * idf[column])
                columns[size] = column
                values[size] = value
                square += value * value
                size += 1
            p += count
        if square > 0:
            scale = np.float32(factor / np.sqrt(square))
            for q in range(first, size):
                values[q] *= scale
        lengths[row] = size - first
        start = end
    return size
