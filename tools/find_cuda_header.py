"""The folder of cuda.h in this Python's packages, which nvidia-cuda-runtime brings; or nothing."""
import importlib.metadata

try:
    files = importlib.metadata.files("nvidia-cuda-runtime") or []
except importlib.metadata.PackageNotFoundError:
    files = []
for file in files:
    if file.name == "cuda.h":
        print(file.locate().resolve().parent)
