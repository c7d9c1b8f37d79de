"""The outcome log: every draw and every outcome of a run, in Parquet, readable while it is written."""

from curricula.log.reader import read_log
from curricula.log.warm import WarmStart, warm_start
from curricula.log.writer import OutcomeLog, open_log

__all__ = ["OutcomeLog", "WarmStart", "open_log", "read_log", "warm_start"]
