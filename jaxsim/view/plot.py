"""Curves over time and over iterations, with matplotlib.

Nothing here touches pyplot, so no figure is registered or shown behind the caller's back. To see a curve under a
notebook cell, pass axes of your own: `plot_loss(losses, ax=plt.subplots()[1])`.
"""

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .atomic import write_atomically
from .optional import import_optional
from .scene import COLOR_CYCLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def _axes(ax: "Axes | None") -> "Axes":
    """`ax`, or the axes of a new figure of their own."""
    if ax is not None:
        return ax
    figure = import_optional("matplotlib.figure").Figure(figsize=(6.4, 3.6), layout="constrained")
    return figure.subplots()


def plot_series(
    times: ArrayLike, values: ArrayLike, labels: Sequence[str], ylabel: str, ax: "Axes | None" = None
) -> "Axes":
    """Curves of quantities over time.

    Args:
        times: (T,) [s].
        values: (T, k), or (T,) for one curve; a value that is not finite leaves a gap.
        labels: k names, for the legend.
        ylabel: quantity and unit, such as "height [m]".
        ax: axes to draw into; None makes a figure.
    Returns:
        The axes drawn into.
    Raises:
        ValueError: the shapes disagree.
        ImportError: matplotlib is missing.
    """
    times, values = np.asarray(times, float), np.asarray(values, float)
    columns = values[:, None] if values.ndim == 1 else values
    wanted = (times.size, len(labels))
    if times.ndim != 1 or columns.shape != wanted:
        raise ValueError(f"plot_series: values must have shape (times, labels) = {wanted}; got {values.shape}")
    ax = _axes(ax)
    for column, label, color in zip(columns.T, labels, _colors(len(labels)), strict=True):
        ax.plot(times, column, label=label, color=color)
    ax.set(xlabel="time [s]", ylabel=ylabel)
    ax.grid(alpha=0.3)
    if len(labels) > 1:
        ax.legend()
    return ax


def plot_loss(losses: ArrayLike, ax: "Axes | None" = None) -> "Axes":
    """Loss over iterations; logarithmic when every finite loss is positive and they span more than one decade.

    Args:
        losses: (N,); a value that is not finite leaves a gap.
        ax: axes to draw into; None makes a figure.
    Returns:
        The axes drawn into.
    Raises:
        ValueError: `losses` is not one-dimensional.
        ImportError: matplotlib is missing.
    """
    losses = np.asarray(losses, float)
    if losses.ndim != 1:
        raise ValueError(f"plot_loss: losses must have shape (N,); got {losses.shape}")
    ax = _axes(ax)
    ax.plot(np.arange(losses.size), losses, color=COLOR_CYCLE[0], marker="." if losses.size < 40 else None)
    ax.set(xlabel="iteration", ylabel="loss")
    ax.grid(alpha=0.3)
    finite = losses[np.isfinite(losses)]
    if finite.size and finite.min() > 0.0 and finite.max() > 10.0 * finite.min():
        ax.set_yscale("log")
    return ax


def save_png(ax_or_fig: "Axes | Figure", path: str | os.PathLike[str], dpi: float = 150.0) -> Path:
    """Write the figure as a PNG, whole or not at all.

    Args:
        ax_or_fig: the figure, or axes in it.
        path: file to write; its folder must exist.
        dpi: dots per inch.
    Returns:
        The path written.
    Raises:
        FileNotFoundError: the folder does not exist.
    """
    figure = ax_or_fig.get_figure(root=True)
    if figure is None:
        raise ValueError("save_png: these axes belong to no figure any more")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    return write_atomically(path, buffer.getvalue())


def _colors(count: int) -> np.ndarray:
    """(count, 3) colours of the cycle, repeating."""
    return COLOR_CYCLE[np.arange(count) % len(COLOR_CYCLE)]
