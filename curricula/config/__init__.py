"""The mix in YAML: one schema for the drop-in sampler, the launcher and the simulator."""

from curricula.config.launcher import launcher_keys
from curricula.config.load import as_config, load_mix
from curricula.config.schema import (
    BanditConfig,
    BeliefConfig,
    CurriculumConfig,
    EnvironmentConfig,
    FilterConfig,
    MonitorConfig,
    ObjectiveConfig,
    PredictorConfig,
    OverlongConfig,
    PassRateCapConfig,
    PredictedZeroVarianceConfig,
    SelectionConfig,
    ShareConfig,
    SuccessConfig,
    ZeroVarianceConfig,
)
from curricula.config.shares import check_shares, share_bounds
from curricula.config.write import resolved

__all__ = [
    "BanditConfig",
    "BeliefConfig",
    "CurriculumConfig",
    "EnvironmentConfig",
    "FilterConfig",
    "MonitorConfig",
    "ObjectiveConfig",
    "PredictorConfig",
    "OverlongConfig",
    "PassRateCapConfig",
    "PredictedZeroVarianceConfig",
    "SelectionConfig",
    "ShareConfig",
    "SuccessConfig",
    "ZeroVarianceConfig",
    "as_config",
    "check_shares",
    "launcher_keys",
    "load_mix",
    "resolved",
    "share_bounds",
]
