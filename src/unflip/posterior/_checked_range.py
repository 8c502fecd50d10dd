"""What share of the labels may be wrong, by a channel that was checked."""

from typing import Any

from sklearn.utils.validation import check_is_fitted

from unflip._diagnostics.error_range import channel_range


def checked_range(channel: Any) -> tuple[float, float]:
    """Return (low, high) of the share of wrong labels, if mistakes may depend on the row."""
    check_is_fitted(channel)
    check = channel.check_
    if check is None:
        raise AttributeError(
            "wrong_share_range_ rests on the check of the channel, which is made where "
            f"features='auto'; here features={channel.features!r}."
        )
    return channel_range(
        check.disagreement,
        check.n_rows,
        channel.interval_.wrong_share,
        simple_disagreement=None if check.verdict == "believed" else check.simple_disagreement,
        n_classes=channel.classes_.size,
        by_a_rule=check.verdict == "rule" and channel.classes_.size > 2,
    )
