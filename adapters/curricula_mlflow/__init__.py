"""Logs a curriculum's metrics to the MLflow run that the trainer already has."""

from curricula.versions import require

require("mlflow")

from curricula_mlflow.tracker import MLflowTracker  # noqa: E402  (the check comes before the host's import)

__all__ = ["MLflowTracker"]
