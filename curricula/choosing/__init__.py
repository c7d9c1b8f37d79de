"""From shares to prompts: who the candidates are, what they are worth, and draws of known probability."""
