"""Where pip and the CUDA toolkit put NVIDIA's libraries."""

import glob
import os
import sys
from collections.abc import Iterator


def library_folders() -> list[str]:
    """Existing folders: first those of NVIDIA's packages and of torch, then the toolkit's."""
    return list(dict.fromkeys(filter(os.path.isdir, _places())))


def _places() -> Iterator[str]:
    for place in filter(os.path.isabs, sys.path):
        yield from sorted(glob.glob(os.path.join(glob.escape(place), "nvidia", "*", "lib")))
        yield os.path.join(place, "torch", "lib")
    for variable in "CUDA_HOME", "CUDA_PATH":
        home = os.environ.get(variable, "")
        if os.path.isabs(home):
            yield os.path.join(home, "lib64")
            yield os.path.join(home, "lib")
    yield "/usr/local/cuda/lib64"
