"""Cross-entropy of the softmax over a mention's candidates; lists without a right one are moot."""

from typing import Any


def softmax_loss(scores: Any, is_right: Any, lists: Any) -> Any:
    """Return the mean over mentions.

    scores (float[n]), is_right (float[n]): Of the candidates.
    lists (int64[n]): Which mention each belongs to, from 0 on.
    """
    import torch

    n_lists = int(lists.max()) + 1
    # Subtracting the largest keeps the exponential finite and changes nothing else.
    largest = torch.full((n_lists,), -torch.inf).scatter_reduce(0, lists, scores.detach(), "amax")
    shifted = torch.exp(scores - largest[lists])
    total = torch.zeros(n_lists).index_add(0, lists, shifted)
    right = torch.zeros(n_lists).index_add(0, lists, shifted * is_right)
    has_right = right > 0
    if not bool(has_right.any()):
        return scores.sum() * 0
    return -(torch.log(right[has_right]) - torch.log(total[has_right])).mean()
