"""Logs a curriculum's metrics to the MLflow run that the trainer already has, and reads runs back as points."""

from curricula.versions import require

require("mlflow")

from curricula_mlflow.reading import read_points  # noqa: E402  (the check comes before the host's import)
from curricula_mlflow.tracker import MLflowTracker  # noqa: E402

__all__ = ["MLflowTracker", "read_points"]
