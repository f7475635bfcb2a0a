"""Finding phrases in a caption and putting others in their place, grammatically."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

# A hyphen or apostrophe between letters belongs to the word: "high" is not found in "high-rise".
_WORD = re.compile(r"\w+(?:[-'’]\w+)*")
_TRAILING_ARTICLE = re.compile(r"(?<![\w'’-])(an?)(\s+)\Z", re.IGNORECASE)
# "u" and "eu" that sound like "you", and the "one" of "once", take "a" in spite of their first letter.
_CONSONANT_SOUND = re.compile(r"(?:uni(?!n|m)|us[ae]|usu|uti|ubi|eu|one\b|once)", re.IGNORECASE)
_SILENT_H = re.compile(r"(?:hour|honest|honou?r|heir)", re.IGNORECASE)


@dataclass(frozen=True)
class Span:
    """Characters ``start`` to ``end`` of a caption, where ``phrase`` was found."""

    start: int
    end: int
    phrase: str


@dataclass(frozen=True)
class Replacement:
    """``text`` in place of characters ``start`` to ``end``."""

    start: int
    end: int
    text: str


def words(text: str) -> list[str]:
    """The lower-case words of ``text``, as the matcher sees them."""
    return [match.group().lower() for match in _WORD.finditer(text)]


class PhraseMatcher:
    """Finds whole phrases whatever their case; the longest win, then the leftmost, and no two overlap."""

    def __init__(self, phrases: Sequence[str]) -> None:
        self._by_first_word: Mapping[str, list[tuple[str, ...]]] = _grouped_by_first_word(phrases)

    def find(self, caption: str) -> list[Span]:
        """The phrases in ``caption``, from left to right."""
        tokens = list(_WORD.finditer(caption))
        lowered = [token.group().lower() for token in tokens]
        candidates: list[Span] = []
        for first, word in enumerate(lowered):
            for phrase in self._by_first_word.get(word, ()):
                last = first + len(phrase) - 1
                if tuple(lowered[first : last + 1]) == phrase and _only_space_between(
                    caption, tokens[first : last + 1]
                ):
                    candidates.append(Span(tokens[first].start(), tokens[last].end(), " ".join(phrase)))
        return _longest_first(candidates)


def replace(caption: str, replacements: Sequence[Replacement]) -> str:
    """Apply non-overlapping ``replacements``, keeping the case of each place and turning "a" into "an" where needed."""
    output = ""
    position = 0
    for replacement in sorted(replacements, key=lambda item: item.start):
        output = _with_article_for(replacement.text, output + caption[position : replacement.start])
        output += _with_case_of(caption[replacement.start : replacement.end], replacement.text)
        position = replacement.end
    return output + caption[position:]


def takes_an(text: str) -> bool:
    """Whether the indefinite article before ``text`` is "an"."""
    if _SILENT_H.match(text):
        return True
    return text[:1].lower() in set("aeiou") and not _CONSONANT_SOUND.match(text)


def with_article(thing: str) -> str:
    """``thing`` with "a" or "an" before it."""
    return f"{'an' if takes_an(thing) else 'a'} {thing}"


def _grouped_by_first_word(phrases: Sequence[str]) -> dict[str, list[tuple[str, ...]]]:
    grouped: dict[str, list[tuple[str, ...]]] = {}
    for phrase in phrases:
        parts = tuple(words(phrase))
        grouped.setdefault(parts[0], []).append(parts)
    return grouped


def _only_space_between(caption: str, tokens: Sequence[re.Match[str]]) -> bool:
    return all(caption[left.end() : right.start()].isspace() for left, right in pairwise(tokens))


def _longest_first(candidates: list[Span]) -> list[Span]:
    chosen: list[Span] = []
    for span in sorted(candidates, key=lambda item: (-len(item.phrase), item.start)):
        if all(span.end <= other.start or other.end <= span.start for other in chosen):
            chosen.append(span)
    return sorted(chosen, key=lambda item: item.start)


def _with_article_for(following: str, text: str) -> str:
    """``text`` with an indefinite article at its end made to fit ``following``."""
    found = _TRAILING_ARTICLE.search(text)
    if found is None:
        return text
    article = _with_case_of(found.group(1), "an" if takes_an(following) else "a")
    return text[: found.start()] + article + found.group(2)


def _with_case_of(original: str, text: str) -> str:
    if len(original) > 1 and original.isupper():
        return text.upper()
    return text[:1].upper() + text[1:] if original[:1].isupper() else text
