"""Whether a vLLM server was started with a model of the shape that is trained, before weights are sent to it."""

from typing import Any

from curricula.errors import CurriculaValueError

_SHAPE = (
    "model_type",
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
)


def check_same_model(trainer: Any) -> None:
    """Refuses a server whose model has another shape than the trainer's; weights of the same shape may be any.

    A server on another machine may name a folder that is not here: then nothing is compared, and vLLM says at the first
    update what does not fit.

    Args:
        trainer: A trainer of TRL's, on the rank that speaks with the server.

    Raises:
        CurriculaValueError: With both models, and where they differ.
    """
    client = getattr(getattr(trainer, "vllm_generation", None), "vllm_client", None)
    own = trainer.model.config
    if client is None or client.model == own.name_or_path:
        return
    from transformers import AutoConfig

    model = (client.get_server_info().get("model_config") or {}).get("model") or client.model
    try:
        theirs = AutoConfig.from_pretrained(model, trust_remote_code=bool(trainer.args.trust_remote_code))
    except (OSError, ValueError):
        return
    theirs, own_text = theirs.get_text_config(), own.get_text_config()
    shapes = [(name, getattr(theirs, name, None), getattr(own_text, name, None)) for name in _SHAPE]
    odd = [(name, served, trained) for name, served, trained in shapes if None not in (served, trained)]
    odd = [(name, served, trained) for name, served, trained in odd if served != trained]
    if odd:
        raise CurriculaValueError(
            f"attach: expected the vLLM server at {client.base_url} to serve the model that is trained, "
            f"{own.name_or_path or type(trainer.model).__name__} "
            f"({', '.join(f'{name} {trained}' for name, _, trained in odd)}); got {model} "
            f"({', '.join(f'{name} {served}' for name, served, _ in odd)}); start the server with the trainer's model"
        )
