"""What compiled code gets: matrices checked once, in the one form that it is compiled for."""

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from spacy_xel.errors import Errors, Warnings
from spacy_xel.types import Float32Array, Int32Array, Int64Array


class Rows(NamedTuple):
    """A sound CSR matrix: indices within bounds, sorted, none twice; no value negative or NaN."""

    indptr: Int64Array  # (n_rows + 1,)
    indices: Int32Array
    data: Float32Array
    shape: tuple[int, int]


def check_features(features: Any, dimension: int | None = None) -> Rows:
    """Return features as Rows, or raise an error that says what is wrong with them."""
    from spacy_xel.retrieval.label_tree.search_kernels import BROKEN, SOUND, UNSORTED, check_rows

    if not (sparse.issparse(features) or isinstance(features, Rows)):
        features = sparse.csr_matrix(features)
    if dimension is not None and features.shape[1] != dimension:
        raise ValueError(Errors.XE028.format(expected=dimension, value=features.shape[1]))
    if isinstance(features, Rows):
        return features
    features = features.tocsr()
    if len(features.indptr) != features.shape[0] + 1 or not _fits_int32(features.indices):
        raise ValueError(Errors.XE043.format(shape=features.shape))
    for _ in range(2):
        indptr = features.indptr.astype(np.int64, copy=False)
        indices = features.indices.astype(np.int32, copy=False)
        data = features.data.astype(np.float32, copy=False)
        state = check_rows(indptr, indices, data, features.shape[1])
        if state == SOUND:
            return Rows(indptr, indices, data, features.shape)
        if state == BROKEN:
            raise ValueError(Errors.XE043.format(shape=features.shape))
        if state == UNSORTED:
            features = features.copy()
            features.sum_duplicates()
    raise ValueError(Errors.XE029)


def _fits_int32(indices: npt.NDArray[Any]) -> bool:
    if indices.dtype == np.int32 or len(indices) == 0:
        return True
    return bool(indices.min() >= 0 and indices.max() <= np.iinfo(np.int32).max)


def check_labels(labels: Any, n_rows: int) -> sparse.csr_matrix:
    """Return labels as a CSR matrix whose values are targets, or raise an error."""
    matrix = sparse.csr_matrix(labels, dtype=np.float32, copy=True)
    if matrix.shape[0] != n_rows:
        raise ValueError(Errors.XE030.format(features=n_rows, labels=matrix.shape[0]))
    if matrix.shape[1] == 0 or n_rows == 0:
        raise ValueError(Errors.XE031.format(rows=n_rows, labels=matrix.shape[1]))
    check_features(abs(matrix))  # before anything reads its indices
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if matrix.nnz and not ((matrix.data > 0) & (matrix.data <= 1)).all():
        raise ValueError(Errors.XE032)
    indptr, indices, data, shape = check_features(matrix)
    without = int(np.count_nonzero(np.bincount(indices, minlength=shape[1]) == 0))
    if without:
        warnings.warn(Warnings.XW003.format(count=without, total=shape[1]), stacklevel=3)
    return sparse.csr_matrix((data, indices, indptr), shape=shape)


def check_weights(weights: Any, n_rows: int) -> Float32Array:
    """Return how much each instance counts, or raise an error."""
    if weights is None:
        return np.ones(n_rows, dtype=np.float32)
    array = np.asarray(weights, dtype=np.float32)
    if array.shape != (n_rows,) or not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError(Errors.XE033.format(rows=n_rows))
    return array
