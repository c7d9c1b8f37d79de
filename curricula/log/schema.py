"""The columns of an outcome log."""

from functools import lru_cache
from typing import Any

from curricula.log.arrow import arrow

FORMAT = 2
READABLE = (1, 2)
"""Format 1 has no `weight`, `belief_pool` and `device_seconds`."""
PREFIX = b"curricula."


@lru_cache(maxsize=1)
def schema() -> Any:
    """The pyarrow schema: a row for each outcome that was told, and for each draw that never was.

    run, seed: which run of the log, and the seed of its mix.
    ticket, ask, asked_at, asked_time, policy_version, group_size: the ask; `asked_at` is its place in the order of
        all events. Null for outcomes that were told by index, and for those told twice.
    index, key, environment, level, reason, propensity, share: the draw; `share` is its environment's of the draws.
    weight: how many eligible prompts of its environment it stands for, mean 1; 0 for a repeat.
    belief_mean, belief_std: of its pass rate when it was drawn; belief_pool: the mean of its environment's eligible
        prompts. What a group of result y says of that mean is belief_pool + y - belief_mean, weighed by `weight`.
    told_at, time: when it was told, or given up; `told_at` counts as `asked_at` does, `time` is in Unix seconds.
    device_seconds: seconds times devices that the run, and those it continues, had spent when it was told; null where
        the host kept no clock.
    status: ok, error, stale, cancelled; expired or open where it was never told.
    keep, verdict: the verdict and its reason.
    rewards, successes, tokens, interrupted, truncated, trainable, components: for each rollout, as they were told.
    """
    pa = arrow()
    floats = pa.list_(pa.float64())
    return pa.schema(
        [
            ("run", pa.int32()),
            ("seed", pa.int64()),
            ("ticket", pa.int64()),
            ("ask", pa.int64()),
            ("asked_at", pa.int64()),
            ("asked_time", pa.float64()),
            ("policy_version", pa.int64()),
            ("group_size", pa.int64()),
            ("index", pa.int64()),
            ("key", pa.string()),
            ("environment", pa.string()),
            ("level", pa.int64()),
            ("reason", pa.string()),
            ("propensity", pa.float64()),
            ("share", pa.float64()),
            ("weight", pa.float64()),
            ("belief_mean", pa.float64()),
            ("belief_std", pa.float64()),
            ("belief_pool", pa.float64()),
            ("told_at", pa.int64()),
            ("time", pa.float64()),
            ("device_seconds", pa.float64()),
            ("status", pa.string()),
            ("keep", pa.bool_()),
            ("verdict", pa.string()),
            ("rewards", floats),
            ("successes", floats),
            ("tokens", floats),
            ("interrupted", floats),
            ("truncated", floats),
            ("trainable", floats),
            ("components", pa.list_(floats)),
        ]
    )
