"""One query's standing: which reasons it has, which of them decides, and that renderers know every one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evidex.encoders.domain import FAINT, WEAK
from evidex.retrieval.certainty.policy import Judged
from evidex.retrieval.hits import Hit, Refinement
from evidex.retrieval.out_of_domain import Bar, Reading
from evidex.retrieval.rows import Row
from evidex.retrieval.scan.partial import Partial, empty
from evidex.retrieval.spelling import Mended
from evidex.retrieval.standing import Case, Level, Reason, Standing
from evidex.retrieval.wording import HEADLINES, MOST, NEARLY_ALL, details, explanation, share_in_words


def _found(best: float) -> Partial:
    return Partial(np.array([0, 1]), np.array([best, best - 0.1]), 1.0, 100, 0.1)


SURE, UNSURE = Judged(0.2, False, False, 0.7, 10), Judged(0.95, True, False, 0.3, 10)
PLAIN = Case(_found(0.6), Reading(), SURE, Bar(0.2, 0.2, 0.4, 0.5))
OUT_OF_DOMAIN = Reading(new_words=("giraffe",))
NOTHING = Reading(names_nothing=True)
IN_PASSING = Reading(hardly_known=True, in_passing=("socks",))
HALF_KNOWN = replace(OUT_OF_DOMAIN, mostly_known=True)


@pytest.mark.parametrize(
    ("case", "level", "verdict", "reasons"),
    [
        (PLAIN, Level.GOOD, "answered", []),
        (replace(PLAIN, judged=replace(SURE, percentile=0.6)), Level.PLAUSIBLE, "answered", [Reason.OTHERS_SURER]),
        (replace(PLAIN, first=empty(0.1), judged=None), Level.EMPTY, "abstained", [Reason.NOTHING_SEARCHED]),
        (replace(PLAIN, reading=OUT_OF_DOMAIN), Level.OUT_OF_DOMAIN, "abstained", [Reason.NEW_WORDS]),
        (replace(PLAIN, reading=OUT_OF_DOMAIN, judged=UNSURE), Level.OUT_OF_DOMAIN, "abstained", [Reason.NEW_WORDS]),
        (
            replace(PLAIN, reading=OUT_OF_DOMAIN, bar=Bar(refuses=False)),
            Level.LOOK_TWICE,  # who wants no refusal gets an answer, and is told of the word
            "answered",
            [Reason.IGNORED_WORDS],
        ),
        (
            replace(PLAIN, reading=OUT_OF_DOMAIN, bar=Bar(refuses=False), judged=None),
            Level.UNJUDGED,
            "answered",
            [Reason.NOT_CALIBRATED, Reason.IGNORED_WORDS],
        ),
        *(
            (case, Level.NOTHING_ASKED, "abstained", [Reason.NOTHING_ASKED])
            for case in (
                replace(PLAIN, reading=NOTHING),
                replace(PLAIN, reading=NOTHING, bar=Bar(refuses=False)),
                replace(PLAIN, reading=NOTHING, first=_found(0.1), judged=UNSURE),
            )
        ),
        (replace(PLAIN, first=empty(0.1), reading=NOTHING), Level.EMPTY, "abstained", [Reason.NOTHING_SEARCHED]),
        (replace(PLAIN, reading=HALF_KNOWN), Level.LOOK_TWICE, "answered", [Reason.IGNORED_WORDS]),
        (
            replace(PLAIN, reading=HALF_KNOWN, first=_found(0.3)),  # and its best hit is faint
            Level.OUT_OF_DOMAIN,
            "abstained",
            [Reason.NEW_WORDS, Reason.FAINT],
        ),
        (replace(PLAIN, reading=IN_PASSING), Level.LOOK_TWICE, "answered", [Reason.IGNORED_WORDS]),
        (
            replace(PLAIN, reading=IN_PASSING, first=_found(0.3)),
            Level.OUT_OF_DOMAIN,
            "abstained",
            [Reason.NEW_WORDS, Reason.FAINT],
        ),
        (
            replace(PLAIN, reading=IN_PASSING, first=_found(0.3), bar=Bar()),
            Level.LOOK_TWICE,
            "answered",
            [Reason.IGNORED_WORDS],
        ),
        *(
            (
                replace(PLAIN, reading=reading, judged=replace(SURE, percentile=0.86), first=_found(0.45)),
                Level.OUT_OF_DOMAIN,  # a word that says little, and little that is like the rest
                "abstained",
                [Reason.NEW_WORDS],
            )
            for reading in (Reading(ignored_words=("spoons",)), Reading(in_passing=("socks",)), HALF_KNOWN)
        ),
        (
            replace(PLAIN, reading=Reading(ignored_words=("wooden", "spoons")), judged=UNSURE),
            Level.OUT_OF_DOMAIN,  # several such words, whatever its best match
            "abstained",
            [Reason.NEW_WORDS],
        ),
        (
            replace(PLAIN, reading=Reading(ignored_words=("wooden", "spoons")), judged=SURE),
            Level.LOOK_TWICE,  # usual questions find less
            "answered",
            [Reason.IGNORED_WORDS],
        ),
        (
            replace(PLAIN, reading=Reading(ignored_words=("wooden", "spoons")), judged=UNSURE, bar=Bar(0.2)),
            Level.LOOK_TWICE,  # known answers say more than the model does
            "refined",
            [Reason.UNCERTAIN_AT_FIRST, Reason.IGNORED_WORDS, Reason.OTHERS_SURER],
        ),
        (
            replace(PLAIN, reading=Reading(ignored_words=("wooden", "spoons")), judged=UNSURE, first=_found(0.1)),
            Level.NO_MATCH,
            "abstained",
            [Reason.BELOW_FLOOR, Reason.IGNORED_WORDS, Reason.FAINT],
        ),
        (
            replace(PLAIN, reading=Reading(ignored_words=("spoons",)), judged=replace(UNSURE, unsupported=True)),
            Level.LOOK_TWICE,  # one, and its best match is as right answers have it
            "refined",
            [Reason.UNCERTAIN_AT_FIRST, Reason.IGNORED_WORDS, Reason.FEW_ALIKE, Reason.OTHERS_SURER],
        ),
        (
            replace(PLAIN, reading=Reading(ignored_words=("spoons",)), judged=replace(SURE, percentile=0.86)),
            Level.LOOK_TWICE,  # its best match is one
            "answered",
            [Reason.IGNORED_WORDS, Reason.OTHERS_SURER],
        ),
        (replace(PLAIN, first=_found(0.1)), Level.NO_MATCH, "abstained", [Reason.BELOW_FLOOR, Reason.FAINT]),
        (replace(PLAIN, first=_found(np.nan)), Level.NO_MATCH, "abstained", [Reason.BELOW_FLOOR, Reason.FAINT]),
        (replace(PLAIN, first=_found(0.3)), Level.LOOK_TWICE, "answered", [Reason.FAINT]),
        (replace(PLAIN, judged=None), Level.UNJUDGED, "answered", [Reason.NOT_CALIBRATED]),
        (replace(PLAIN, reading=Reading(in_part=True)), Level.LOOK_TWICE, "answered", [Reason.READ_IN_PART]),
        (replace(PLAIN, reading=Reading(negated="not")), Level.LOOK_TWICE, "answered", [Reason.NEGATED]),
        (
            replace(PLAIN, judged=UNSURE),
            Level.LOOK_TWICE,
            "refined",
            [Reason.UNCERTAIN_AT_FIRST, Reason.OTHERS_SURER],
        ),
        (
            replace(PLAIN, judged=replace(SURE, unsure=True)),  # asked again because somebody wished it
            Level.GOOD,
            "refined",
            [],
        ),
        (
            replace(PLAIN, judged=replace(UNSURE, unsupported=True), first=_found(0.29)),
            Level.NO_MATCH,
            "abstained",
            [Reason.LITTLE_EVIDENCE, Reason.UNCERTAIN_AT_FIRST, Reason.FAINT, Reason.OTHERS_SURER],
        ),
        (
            replace(PLAIN, judged=replace(SURE, unsupported=True, unpromised=True), bar=Bar(0.2)),  # well supported
            Level.UNSURE,
            "abstained",
            [Reason.BEYOND_GUARANTEE],
        ),
        (
            replace(PLAIN, judged=replace(SURE, percentile=0.86), first=_found(0.45)),  # little is alike, the best too
            Level.LOOK_TWICE,
            "answered",
            [Reason.FEW_ALIKE, Reason.OTHERS_SURER],
        ),
        (
            replace(PLAIN, judged=replace(SURE, percentile=0.86), first=_found(0.55)),
            Level.PLAUSIBLE,
            "answered",
            [Reason.OTHERS_SURER],
        ),
        (
            replace(PLAIN, judged=replace(SURE, percentile=0.84), first=_found(0.45)),
            Level.PLAUSIBLE,
            "answered",
            [Reason.OTHERS_SURER],
        ),
        (
            replace(PLAIN, judged=replace(UNSURE, unsupported=True), first=_found(0.31)),  # nearer to a match
            Level.LOOK_TWICE,
            "refined",
            [Reason.UNCERTAIN_AT_FIRST, Reason.FEW_ALIKE, Reason.FAINT, Reason.OTHERS_SURER],
        ),
        (
            replace(PLAIN, judged=replace(UNSURE, unsupported=True)),  # rare, but there
            Level.LOOK_TWICE,
            "refined",
            [Reason.UNCERTAIN_AT_FIRST, Reason.FEW_ALIKE, Reason.OTHERS_SURER],
        ),
        (
            replace(PLAIN, judged=replace(UNSURE, unsure=False, unsupported=True)),  # and nobody wanted it asked again
            Level.LOOK_TWICE,
            "answered",
            [Reason.FEW_ALIKE, Reason.OTHERS_SURER],
        ),
    ],
)
def test_the_weightiest_reason_decides(case: Case, level: Level, verdict: str, reasons: list[Reason]) -> None:
    standing = case.standing(case.first)
    assert (standing.level, standing.verdict, list(standing.reasons)) == (level, verdict, reasons)
    by_calibration = {Reason.LITTLE_EVIDENCE, Reason.BEYOND_GUARANTEE} & set(standing.reasons)
    assert not (case.asks_again and standing.level.refused and not by_calibration)
    known = {Reason.NEW_WORDS, Reason.BELOW_FLOOR, Reason.NOTHING_ASKED, Reason.NOT_CALIBRATED}
    apart, unread = known & set(reasons), bool(case.reading.new_words)  # calibrations leave such texts out
    assert bool(standing.reading.new_words) == (Reason.NEW_WORDS in reasons)
    assert (standing.percentile is None) == (bool(apart) or unread or level is Level.EMPTY)
    assert standing.may_guarantee == (standing.percentile is not None and verdict != "abstained")


def test_a_query_asked_again_is_as_faint_as_what_it_found_then() -> None:
    case = replace(PLAIN, judged=replace(SURE, unsure=True))
    assert case.asks_again
    assert case.standing(_found(0.6)).chance is None
    assert Reason.FAINT in case.standing(_found(0.3)).reasons
    assert Reason.FAINT not in replace(case, first=_found(0.3)).standing(_found(0.6)).reasons


def test_every_level_and_reason_has_words() -> None:
    assert set(HEADLINES) == set(Level)
    assert {Standing((reason,)).level for reason in Reason} | {Standing().level} == set(Level)
    said = {explanation(Standing((reason,), reading=Reading(("giraffe",), ("zebra",))), 50, None) for reason in Reason}
    assert len(said) == len(Reason)
    for sentence in {*said, explanation(Standing(), 50, None)}:
        assert sentence.endswith(".")
        assert "percentile" not in sentence
        assert "%" not in sentence


def test_the_numbers_stand_in_the_details() -> None:
    standing = replace(PLAIN, judged=UNSURE, first=_found(0.3)).standing(_found(0.3))
    hit = Hit.of(Row("id", "p", "image", ""), 1, 0.3)
    told = details(standing, [hit], Refinement(4, ("new",), (), True, 0.5))
    assert "0.30 like the question" in told[0]
    assert "nine of ten are at least" in told[0]
    assert told[1] == f"Of 100 usual questions about {100 * UNSURE.percentile:.0f} find more in this archive."
    assert "asked again in 4 similar forms; 1 of 1 hits changed." in told[2]
    assert details(Standing((Reason.NOTHING_SEARCHED,)), [], None) == ()


def test_what_was_mended_is_said_first() -> None:
    reading = Reading(mended=(Mended("mountian", "mountain"),))
    assert explanation(Standing(reading=reading), 50, None).startswith("Read 'mountian' as 'mountain'. The hits are")


def test_a_denial_is_told_beside_what_weighs_more() -> None:
    case = replace(PLAIN, reading=Reading(negated="without"))
    alone, doubted = (replace(case, judged=judged).standing(case.first) for judged in (SURE, UNSURE))
    told = explanation(alone, 50, None)
    assert told == (
        "The model does not understand 'without' and finds what follows it; put a minus before what is not wanted, as "
        "in '-river'."
    )
    assert doubted.reasons[0] is Reason.UNCERTAIN_AT_FIRST
    assert explanation(doubted, 50, None).endswith(f"look at the hits. {told}")
    refused = replace(case, first=_found(0.1)).standing(_found(0.1))
    assert "without" not in explanation(refused, 50, None)


def test_how_many_and_in_which_state_is_told_as_a_doubt() -> None:
    case = replace(PLAIN, reading=Reading(counted="two planes", state="broken"))
    alone, doubted = (replace(case, judged=judged).standing(case.first) for judged in (SURE, UNSURE))
    assert (alone.level, alone.reasons) == (Level.LOOK_TWICE, (Reason.COUNTED, Reason.STATE))
    told = (
        "You asked for 'two planes', and the model hardly tells how many there are; count for yourself. "
        "The model hardly learned 'broken'; the hits may be in any state."
    )
    assert explanation(alone, 50, None) == told
    assert explanation(doubted, 50, None).endswith(f"look at the hits. {told}")
    how_many = replace(case, reading=Reading(counted="how many")).standing(case.first)
    assert explanation(how_many, 50, None) == "The model hardly tells how many there are; count for yourself."
    refused = replace(case, first=_found(0.1)).standing(_found(0.1))
    assert "broken" not in explanation(refused, 50, None)


def test_what_is_scarce_is_not_denied() -> None:
    standing = replace(PLAIN, reading=Reading(negated="Few")).standing(PLAIN.first)
    said = "The model does not understand 'Few' and finds what follows it, however much there is of it."
    assert explanation(standing, 50, None) == said


def test_a_dash_with_blanks_is_said_to_be_no_minus() -> None:
    standing = replace(PLAIN, reading=Reading(negated="\u2013")).standing(PLAIN.first)
    assert standing.level is Level.LOOK_TWICE
    said = (
        "'\u2013' with blanks around it takes nothing away, and what follows it is found too; put a minus right before "
        "what is not wanted, as in '-river'."
    )
    assert explanation(standing, 50, None) == said


def test_what_was_taught_in_passing_is_said_to_be_hardly_learned() -> None:
    for found, said in ((0.6, "; the hits may leave that out."), (0.3, ", nor anything like it.")):
        case = replace(PLAIN, reading=replace(IN_PASSING, ignored_words=("wool",)), first=_found(found))
        assert f"The model hardly learned 'wool' and 'socks'{said}" in explanation(case.standing(case.first), 50, None)
    never = replace(PLAIN, reading=Reading(hardly_known=True, ignored_words=("wool",)), first=_found(0.3))
    assert "The model never learned 'wool', nor" in explanation(never.standing(never.first), 50, None)


def test_shares_are_told_as_the_constants_have_them() -> None:
    assert share_in_words(1 - WEAK) == NEARLY_ALL == "nine of ten"
    assert share_in_words(1 - FAINT) == MOST == "three of four"
    assert [share_in_words(share) for share in (0.5, 1 - 0.2)] == ["one of two", "four of five"]
