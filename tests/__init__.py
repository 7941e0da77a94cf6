"""Tests of the engine and the window, and the slow, obvious twins that they compare with."""
