"""Reuse: the part of an earlier tree below the outcome that became real."""

from __future__ import annotations

from uamcts.reference.models import identity_of
from uamcts.reference.tree import Node


def reusable(model: object, root: Node, state: object) -> Node | None:
    """The most visited outcome of the root's actions that is `state`, if what lies below it still holds.

    Below a doubtful transition the search was less careful: now that its outcome is known, nothing is kept.
    """
    found = [place for child in root.children for place in (child.outcomes or [child])]
    usable = [place for place in found if place.children and not place.terminal and not place.doubted]
    try:
        key = identity_of(model)
        wanted = key(state)
        usable = [place for place in usable if place.state is not None and key(place.state) == wanted]
    except TypeError:
        usable = [place for place in usable if place.state is state]
    return max(usable, key=lambda place: place.visits, default=None)
