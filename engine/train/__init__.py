"""Makes drafters for a target: its own answers, their features, training, export and evaluation.

PyTorch is imported in `model`, `training` and nowhere else. What a trained drafter is worth, the engine says.
"""
