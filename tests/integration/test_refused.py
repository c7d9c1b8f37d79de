"""What `curricula train` turns into one line is TRL's word on an argument: no fault of ours, and none of a reward."""

import types
from pathlib import Path
from typing import Any

import host
import pytest
import requests
from trl import GRPOTrainer

from curricula import ConfigError, CurriculumConfig
from curricula_trl import launch
from curricula_trl.binding import Binding
from curricula_trl.refused import building


def train(folder: Path, reward: Any = host.reward, **trainer: Any) -> Any:
    host.model().save_pretrained(folder / "model")
    host.tokenizer().save_pretrained(folder / "model")
    given = {**host.arguments(folder / "out", max_steps=2), **trainer}
    config = CurriculumConfig.model_validate({"model": str(folder / "model"), "trainer": given})
    return launch.run(config, host.dataset(), reward)


def test_an_argument_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"trainer.vllm_importance_sampling_clip_min: expected what TRL accepts; got"):
        train(tmp_path, vllm_importance_sampling_clip_min=4.0)
    with pytest.raises(ConfigError, match=r"trainer.cache_implementation: expected what TRL accepts") as caught:
        train(tmp_path, cache_implementation="nonsense")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [ConnectionError, requests.ConnectionError, requests.Timeout])
def test_a_server_that_is_not_there_is_no_bad_model(kind: type[Exception]) -> None:
    # As where there is an accelerator: TRL's own client waits for the server.
    def wait(self: Any, *_: Any, **__: Any) -> None:
        raise kind("The vLLM server can't be reached at http://127.0.0.1:9\nafter 1.0 seconds.")

    module = types.ModuleType("trl.generation.vllm_client")
    exec(compile("def call(wait):\n    wait(None)\n", "vllm_client.py", "exec"), module.__dict__)
    config = CurriculumConfig.model_validate({"model": "m", "trainer": {"vllm_server_port": 9}})
    message = r"trainer\.vllm_server_port: expected a vLLM server that answers; got: The vLLM .* after 1.0 seconds\.$"
    with pytest.raises(ConfigError, match=message), building(config, "m"):
        module.call(wait)
    # The hub's connection is the model's matter, as the model is loaded.
    exec("def from_pretrained(wait):\n    wait(None)\n", module.__dict__)
    module.__dict__["__name__"] = "transformers.modeling_utils"
    with pytest.raises(ConfigError, match="model: expected a model that transformers can load"), building(config, "m"):
        module.from_pretrained(wait)


def test_a_disk_that_is_full_is_no_bad_model() -> None:
    config = CurriculumConfig.model_validate({"model": "org/name"})
    with pytest.raises(OSError, match="No space left on device"), building(config, "org/name"):
        raise OSError(28, "No space left on device", "/out/run")
    with pytest.raises(ConfigError, match="model: expected a model"), building(config, "org/name"):
        raise OSError("org/name is not a local folder")


def test_a_reward_that_raises_keeps_its_traceback(tmp_path: Path) -> None:
    def reward(**_: Any) -> list[float]:
        raise TypeError("planted in the reward")

    with pytest.raises(TypeError, match="planted in the reward"):
        train(tmp_path, reward)


def test_so_does_a_fault_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Binding, "_observe", lambda *_: None)
    with pytest.raises(TypeError, match="NoneType"):
        train(tmp_path)


def test_so_does_what_is_raised_after_the_first_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compute = GRPOTrainer.compute_loss

    def planted(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if self.state.global_step == 1:
            raise ValueError("planted in the loss")
        return compute(self, *arguments, **keywords)

    monkeypatch.setattr(GRPOTrainer, "compute_loss", planted)
    with pytest.raises(ValueError, match="planted in the loss") as caught:
        train(tmp_path)
    assert not isinstance(caught.value, ConfigError)
