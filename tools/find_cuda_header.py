"""Prints the folder of cuda.h in this Python's package nvidia-cuda-runtime, or nothing."""
import importlib.metadata

try:
    files = importlib.metadata.files("nvidia-cuda-runtime") or []
except importlib.metadata.PackageNotFoundError:
    files = []
for file in files:
    if file.name == "cuda.h":
        print(file.locate().resolve().parent)
