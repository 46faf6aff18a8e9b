"""Which bodies may touch which: switches for ordered pairs of layers and of actors."""

import dataclasses


@dataclasses.dataclass
class ContactFilter:
    """Ordered pairs (owner of the samples, collider) that are switched off; everything else is on.

    Both levels have to allow a pair: an actor pair that is switched on does not undo a layer pair that is off.
    """

    layers: set[tuple[str, str]] = dataclasses.field(default_factory=set)
    actors: set[tuple[str, str]] = dataclasses.field(default_factory=set)

    def allows(self, colliding: tuple[str, str], collider: tuple[str, str]) -> bool:
        """Whether samples of one actor are tested against another; each given by its name and its layer."""
        return (colliding[0], collider[0]) not in self.actors and (colliding[1], collider[1]) not in self.layers


def switch(off: set[tuple[str, str]], a: str, b: str, on: bool, one_way: bool) -> None:
    """Turn a pair on or off, in both directions or only for samples of `a` against `b`."""
    for pair in [(a, b)] if one_way else [(a, b), (b, a)]:
        (off.discard if on else off.add)(pair)
