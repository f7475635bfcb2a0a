"""What a question asks for that pictures of it cannot be told apart by: how many there are, and in which state."""

from __future__ import annotations

import re

from evidex.encoders.domain import IN_PASSING, Domain

_NUMBER = r"(?:one|two|three|four|five|six|seven|eight|nine|ten|[1-9]|1\d|20)"
_COUNT = re.compile(  # of what is asked for, not of what stands beside it
    rf"\s*(?:there\s+(?:is|are)\s+)?(?:only\s+|just\s+|exactly\s+)?"
    rf"((?:the\s+|an?\s+)?(?:single(?!\s+\w+[^su]s\b)|pair\s+of|{_NUMBER}))\s+(?=[^\W\d_])"
    r"(?!(?:or|and|to|by|of|another|more|way|lanes?|sides?|ends?|halves|parts?|levels?|stor(?:e)?ys?)\b)",
    re.IGNORECASE,
)
_STATE = re.compile(
    r"(?<!-)\b(?:broken|damaged|destroyed|ruined|collapsed|demolished|wrecked|derelict|sunken|rusty|flooded|burnt|burned"
    r"|burning|abandoned|deserted|overgrown|unfinished|frozen)\b",
    re.IGNORECASE,
)


def counted(text: str) -> str | None:
    """The words of a question, without its request, that say how many things there should be; None: it does not."""
    found = _COUNT.match(text)
    return None if found is None else found[1]


def state(text: str, known: Domain) -> str | None:
    """The word that names a state which texts taught in passing or never, as far as somebody counted."""
    for found in _STATE.finditer(text):
        often = known.taught_more(found.group().lower())
        if often is not None and often <= IN_PASSING:
            return found.group()
    return None
