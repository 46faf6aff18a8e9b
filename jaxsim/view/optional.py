"""Third-party packages of the viewer extra, imported only when something is drawn."""

import importlib
from types import ModuleType


def import_optional(module: str) -> ModuleType:
    """The module of that dotted name.

    Raises:
        ImportError: its package is not installed; the message gives the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f'drawing needs {package}, which is missing: pip install "jaxsim-contact[viz]"') from error
