"""Third-party packages of the mesh extra, imported only when a mesh is read or worked on."""

import importlib
from types import ModuleType


def mesh_library(module: str, purpose: str) -> ModuleType:
    """The module of that name.

    Raises:
        ImportError: its package is not installed; the message tells what for and gives the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f'{purpose} needs {module}: pip install "jaxsim-contact[mesh]"') from error
