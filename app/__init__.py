"""The window: a Qt program around the engine. Nothing imports it."""
