"""Five sentences a scene, in the manner of remote-sensing caption sets.

A scene kind states what it drew as :class:`Facts`; sentences are built from these alone, so a caption cannot name what
is not in the picture. As in real sets some sentences are exact, some coarse, and some are given twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evidex.scenes.dice import Dice

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
SEVERAL = range(3, 10)
"""Counts for which captions may say "several" or "some"; from ten on they say "many"."""

REPEATING_SHARE = 0.4
"""The share of scenes with at least one sentence given twice."""

Attribute = int | str


@dataclass(frozen=True)
class Phrase:
    """A noun phrase: ``two white planes``."""

    text: str
    plural: bool = True

    @property
    def are(self) -> str:
        return "are" if self.plural else "is"


@dataclass
class Facts:
    """What a scene holds: the main things, what lies around them, and sentences only this kind knows."""

    subjects: list[Phrase]
    around: list[Phrase] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    coarse: list[str] = field(default_factory=list)
    attributes: dict[str, Attribute] = field(default_factory=dict)

    def note(self, others: Mapping[str, Attribute]) -> None:
        """Add attributes; counts of the same thing add up."""
        for name, value in others.items():
            old = self.attributes.get(name)
            self.attributes[name] = old + value if isinstance(value, int) and isinstance(old, int) else value


def an(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def amount(count: int, dice: Dice, exact: float = 0.5) -> str:
    """Return a word for ``count``: the number itself with probability ``exact`` where it has one, else a vague word."""
    if count <= 2 or (count < len(NUMBERS) and dice.chance(exact)):
        return NUMBERS[count]
    if count in SEVERAL:
        return dice.pick(("several", "some"))
    return dice.pick(("many", "many", "many", "lots of", "a lot of"))


def counted(count: int, noun: str, dice: Dice, plural: str | None = None, exact: float = 0.5) -> Phrase:
    """Return ``count`` things as a phrase; ``noun`` may carry adjectives."""
    if count == 1:
        return Phrase(an(noun), plural=False)
    return Phrase(f"{amount(count, dice, exact)} {plural or noun + 's'}")


def joined(phrases: list[Phrase]) -> Phrase:
    if len(phrases) == 1:
        return phrases[0]
    return Phrase(", ".join(p.text for p in phrases[:-1]) + " and " + phrases[-1].text)


def five(facts: Facts, dice: Dice) -> tuple[str, ...]:
    """Return the five captions of a scene."""
    specific = list(dict.fromkeys([*facts.sentences, *_related(facts, dice)]))
    coarse = [sentence for sentence in dict.fromkeys(facts.coarse) if sentence not in specific]
    pool = [specific.pop(int(dice.random() * len(specific)))]
    wanted = 5 if not dice.chance(REPEATING_SHARE) else dice.pick((1, 2, 2, 3, 3, 4))
    while len(pool) < wanted:
        source = coarse if (not specific or (coarse and dice.chance(0.3))) else specific
        pool.append(source.pop(int(dice.random() * len(source))))
    chosen = pool + [dice.pick(pool) for _ in range(5 - wanted)]
    return tuple(f"{sentence} ." for sentence in dice.sample(chosen, 5))


def _related(facts: Facts, dice: Dice) -> list[str]:
    """Return sentences that set the main things beside one or two of their neighbours."""
    sentences: list[str] = []
    if not facts.around:
        return sentences
    for subject in facts.subjects:
        first, *rest = dice.sample(facts.around, min(3, len(facts.around)))
        near = dice.pick(("near", "next to", "beside", "close to"))
        sentences.append(f"{subject.text} {subject.are} {near} {first.text}")
        sentences.append(f"there {subject.are} {subject.text} {near} {first.text}")
        if rest:
            both = joined([first, rest[0]])
            sentences.append(f"{subject.text} {subject.are} near {both.text}")
            sentences.append(f"{both.text} {both.are} {dice.pick(('near', 'around', 'close to'))} {subject.text}")
        if len(rest) > 1:
            every = joined([first, *rest])
            sentences.append(f"{subject.text} {subject.are} surrounded by {every.text}")
    return sentences
