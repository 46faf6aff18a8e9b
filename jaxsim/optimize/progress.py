"""How far an optimisation is, on stderr."""

import contextlib
import sys
from collections.abc import Callable, Iterator

LINES = 10  # of plain text, where tqdm is missing


@contextlib.contextmanager
def progress_display(steps: int, on: bool) -> Iterator[Callable[[int, float, float], None]]:
    """A function of (iteration, loss, gradient norm) that shows them: a bar, or text where tqdm is not installed."""
    if not on:
        yield lambda iteration, loss, norm: None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        yield lambda iteration, loss, norm: _print_some(steps, iteration, loss, norm)
        return
    with tqdm(total=steps, desc="compiling", unit="it", dynamic_ncols=True) as bar:

        def show(iteration: int, loss: float, norm: float) -> None:
            bar.set_description("optimising", refresh=False)
            bar.set_postfix_str(f"loss {loss:.3e}, |gradient| {norm:.1e}", refresh=iteration in (0, steps))
            bar.update(iteration - bar.n)

        yield show


def _print_some(steps: int, iteration: int, loss: float, norm: float) -> None:
    if iteration % max(steps // LINES, 1) == 0 or iteration == steps:
        print(f"iteration {iteration}/{steps}: loss {loss:.3e}, |gradient| {norm:.1e}", file=sys.stderr, flush=True)
