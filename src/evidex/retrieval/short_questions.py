"""One or a few words are how people search: these are asked in several forms, so that none of them decides.

A model that learned from sentences gives "ship", "a ship" and "ships" vectors that lie apart. Their mean, with a short
sentence among them, is one question whichever of them was typed. Captions end with a full stop after a blank, which
nobody types: a longer text is asked without it, with it, and as what an image shows.
"""

from __future__ import annotations

import re

from evidex.retrieval.english import articled, head, plural, singular

MOST_WORDS = 3
"""Beside an article; more are a sentence, or nearly."""
_NO_THING = frozenset({
    "a", "all", "an", "and", "any", "are", "at", "both", "by", "can", "could", "did", "do", "does", "each",
    "eight", "every", "few", "five", "four", "from", "had", "has", "have", "he", "how", "i", "in", "is", "it",
    "its", "many", "me", "more", "most", "my", "nine", "no", "not", "of", "on", "one", "or", "our", "seven",
    "several", "she", "six", "some", "ten", "that", "the", "there", "these", "they", "this", "those", "three",
    "to", "two", "was", "we", "were", "what", "when", "where", "which", "who", "why", "will", "with", "without",
    "would", "you", "your",
})  # fmt: skip
"""Words that no bare name of a thing begins with."""
_WORDS = re.compile(r"[^\W\d_]+")
_CAPTION_END = " ."
_AROUND = " \t\n\r.,;:!?'\"()"


def forms_of(text: str) -> tuple[str, ...]:
    """The forms in which ``text`` is asked: of few words bare, with an article, as many and told; else as captions are.

    A text that ends as captions do is one, and stays as it is.
    """
    said = text.strip(_AROUND)
    bare = singular(said)
    if text.endswith(_CAPTION_END) or not said:
        return (text,)
    if not _names_thing(bare):
        return said, f"{said}{_CAPTION_END}", f"an aerial image of {said}{_CAPTION_END}"
    one = articled(bare)
    return bare, one, plural(bare), f"there is {one} ."


def thing_of(text: str) -> str | None:
    """The one word, in lower case, that names what a text of few words is about; None of a longer one.

    None of "a pair of bridges" either: which of the two it is takes more than grammar.
    """
    asked = text.strip(_AROUND).lower()
    return head(asked) if _names_thing(singular(asked)) and " of " not in asked else None


def _names_thing(bare: str) -> bool:
    words = _WORDS.findall(bare.lower())
    counts = any(character.isdigit() for character in bare)
    return not counts and 1 <= len(words) <= MOST_WORDS and words[0] not in _NO_THING
