"""One or a few words are how people search: these are asked in several forms, so that none of them decides.

A model that learnt from sentences gives "ship", "a ship" and "ships" vectors that lie apart. Their mean, with a short
sentence among them, is one question whichever of them was typed.
"""

from __future__ import annotations

import re

from evidex.degrade.generic_tta import FUNCTION_WORDS
from evidex.retrieval.english import articled, plural, singular

MOST_CONTENT = 3
_MOST_WORDS = 4
_WORDS = re.compile(r"[^\W\d_]+")
_AROUND = " \t\n\r.,;:!?'\"()"


def forms_of(text: str) -> tuple[str, ...]:
    """The forms in which ``text`` is asked: itself, or, of few words, bare, with an article, as many, and told."""
    bare = singular(text.strip(_AROUND))
    words = _WORDS.findall(bare.lower())
    content = [word for word in words if word not in FUNCTION_WORDS]
    if not 1 <= len(content) <= MOST_CONTENT or len(words) > _MOST_WORDS or words[0] in FUNCTION_WORDS:
        return (text,)
    one = articled(bare)
    return bare, one, plural(bare), f"there is {one} ."
