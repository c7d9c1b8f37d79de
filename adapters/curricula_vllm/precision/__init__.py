"""How far apart trainer and generator are on a model: what `curricula precision` measures, and how it advises.

Engines, forward passes and steps run in processes of their own (`python -m curricula_vllm.precision`); sides, figures
and the rule need neither vLLM nor torch.
"""
