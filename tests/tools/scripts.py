"""Loads scripts of bench/ as modules, for their tests."""
import importlib.machinery
import importlib.util
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench"))


def load(name):
    """Loads a script of bench/ as a module, whatever its file extension."""
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "bench" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module
    loader.exec_module(module)
    return module
