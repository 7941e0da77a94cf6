"""The engine: a GGUF target, its drafter, and the cycle that joins them. Knows nothing of Qt."""
