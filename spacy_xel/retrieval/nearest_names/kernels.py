"""Compiled search for the names with the most similar n-grams."""

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def square_sums(indptr, indices, idf, out):
    """Write the sum of squared idf of each row's features."""
    for row in range(indptr.shape[0] - 1):
        total = np.float32(0.0)
        for j in range(indptr[row], indptr[row + 1]):
            total += idf[indices[j]] * idf[indices[j]]
        out[row] = total


@numba.njit(cache=True, nogil=True)
def invert(indptr, indices, starts, names):
    """Write, per feature, the names that have it, in order.

    starts (int64[n_features + 1]): Where each feature's names begin; used as a cursor and restored.
    """
    for row in range(indptr.shape[0] - 1):
        for j in range(indptr[row], indptr[row + 1]):
            feature = indices[j]
            names[starts[feature]] = row
            starts[feature] += 1
    for feature in range(starts.shape[0] - 1, 0, -1):
        starts[feature] = starts[feature - 1]
    starts[0] = 0


@numba.njit(cache=True, nogil=True)
def find_name(names, start, end, name):
    """Return where in a sorted run of names one is or would be."""
    while start < end:
        middle = (start + end) >> 1
        if names[middle] < name:
            start = middle + 1
        else:
            end = middle
    return start


@numba.njit(cache=True, nogil=True)
def search_rows(
    indptr, indices, starts, names, idf, inverse_norms, name_rows, budget, shortlist, rows, scores
):
    """Write the entities whose names are nearest to each query, by cosine.

    indptr, indices (CSR): The features of the queries.
    starts, names: Per feature, the names that have it.
    inverse_norms (float32[n_names]), name_rows (int32[n_names]): Of the names.
    budget (int): So many names of features, the rarest first, are looked at; of those found,
    shortlist (int): so many of the best partial scores are then scored in full.
    rows (int32[n_queries, k]), scores (float32[n_queries, k]): -1 and -inf where nothing is found.
    """
    n_names = inverse_norms.shape[0]
    sums = np.zeros(n_names, dtype=np.float32)
    touched = np.empty(n_names, dtype=np.int32)
    for query in range(indptr.shape[0] - 1):
        features = indices[indptr[query] : indptr[query + 1]]
        lengths = starts[features + 1] - starts[features]
        order = np.argsort(lengths, kind="mergesort")
        norm = np.float32(0.0)
        for feature in features:
            norm += idf[feature] * idf[feature]
        if norm <= 0:
            continue
        n_touched = 0
        used = 0
        spent = 0
        while used < order.shape[0]:
            feature = features[order[used]]
            spent += starts[feature + 1] - starts[feature]
            if spent > budget and n_touched:
                break
            weight = idf[feature] * idf[feature]
            for j in range(starts[feature], starts[feature + 1]):
                name = names[j]
                if sums[name] == 0:
                    touched[n_touched] = name
                    n_touched += 1
                sums[name] += weight
            used += 1
        partial = np.empty(n_touched, dtype=np.float32)
        for i in range(n_touched):
            partial[i] = -sums[touched[i]] * inverse_norms[touched[i]]
        best = np.arange(n_touched)
        if n_touched > shortlist:
            limit = np.partition(partial, shortlist - 1)[shortlist - 1]
            best = np.flatnonzero(partial <= limit)
        for number in range(used, order.shape[0]):
            feature = features[order[number]]
            start, end = starts[feature], starts[feature + 1]
            for chosen in best:
                place = find_name(names, start, end, touched[chosen])
                if place < end and names[place] == touched[chosen]:
                    sums[touched[chosen]] += idf[feature] * idf[feature]
        _write_best(
            touched, best, sums, inverse_norms, name_rows, norm**-0.5, rows[query], scores[query]
        )
        for i in range(n_touched):
            sums[touched[i]] = 0


@numba.njit(cache=True, nogil=True)
def _write_best(touched, best, sums, inverse_norms, name_rows, inverse_norm, rows, scores):
    """Write the entities of the best names, each once; ties go to the smaller row."""
    final = np.empty(best.shape[0], dtype=np.float32)
    owners = np.empty(best.shape[0], dtype=np.int64)
    for i in range(best.shape[0]):
        name = touched[best[i]]
        final[i] = sums[name] * inverse_norms[name] * inverse_norm
        owners[i] = name_rows[name]
    by_owner = np.argsort(owners, kind="mergesort")
    order = by_owner[np.argsort(-final[by_owner], kind="mergesort")]
    found = 0
    for i in order:
        if found == rows.shape[0]:
            break
        is_new = True
        for j in range(found):
            if rows[j] == owners[i]:
                is_new = False
                break
        if is_new:
            rows[found] = owners[i]
            scores[found] = min(final[i], np.float32(1.0))
            found += 1
