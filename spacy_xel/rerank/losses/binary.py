"""Binary cross-entropy: each candidate by itself is right or wrong (XMRED section 2.4)."""

from typing import Any


def binary_loss(scores: Any, is_right: Any, lists: Any) -> Any:
    """Return the mean over candidates.

    scores (float[n]), is_right (float[n]): Of the candidates.
    lists (int64[n]): Which mention each belongs to.
    """
    from torch.nn.functional import binary_cross_entropy_with_logits

    return binary_cross_entropy_with_logits(scores, is_right)
