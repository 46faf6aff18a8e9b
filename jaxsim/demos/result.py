"""What every demo prints and leaves behind."""

from pathlib import Path

import jaxsim as js

from ..view.plot import plot_loss, save_png


def present(name: str, result: js.Optimized, check: js.GradientCheck, trajectory: js.Trajectory, folder: Path) -> None:
    """Print the outcome, and write `jaxsim_NAME.html` (animation) and `jaxsim_NAME_loss.png` into the folder."""
    print(result)
    print(f"gradient check: relative error {check.error:.1e} against differences, {len(check.derivatives)} directions")
    page, picture = folder / f"jaxsim_{name}.html", folder / f"jaxsim_{name}_loss.png"
    try:
        trajectory.to_html(str(page), title=f"jaxsim: {name}")
        axes = plot_loss(result.losses)
        axes.set_title(f"{name}: loss {result.losses[0]:.3g} to {result.best_loss:.3g}")
        print(f"wrote {page} and {save_png(axes, picture)}")
    except ImportError as error:
        print(f"no animation or plot: {error}")
