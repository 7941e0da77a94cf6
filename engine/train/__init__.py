"""Makes drafters for a target: its own answers, their features, training, export and evaluation.

PyTorch is imported in `model`, `training` and nowhere else; what the trained drafters are worth is measured by the engine.
"""
