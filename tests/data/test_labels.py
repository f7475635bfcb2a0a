"""Labels as texts, and which exclude each other."""

from __future__ import annotations

from evidex.data.labels import as_typed, exclusions, spelt_apart


def test_labels_are_asked_as_people_type() -> None:
    assert as_typed("Storage_tanks") == "Storage tanks"
    assert as_typed("medium-residential ") == "medium residential"


def test_labels_exclude_each_other_unless_one_holds_the_words_of_the_other() -> None:
    names = ["Residential", "dense_residential", "residential areas", "rivers", "river", "storage tanks"]
    table = exclusions(names)
    together = {(a, b) for a in range(6) for b in range(6) if not table[a, b] and a < b}
    assert together == {(0, 1), (0, 2), (3, 4)}
    assert (table == table.T).all()
    assert not table.diagonal().any()


def test_a_label_written_together_or_apart_is_one() -> None:
    assert not exclusions(["denseresidential", "dense_residential"]).any()
    assert exclusions(["denseresidential", "sparse residential"])[0, 1]


def test_labels_of_two_datasets_do_not_exclude_each_other() -> None:
    names, sources = ["port", "harbor", "forest"], [{"port", "forest"}, {"harbor", "forest"}]
    table = exclusions(names, sources)
    assert not table[0, 1]
    assert table[0, 2]
    assert table[1, 2]


def test_a_label_written_together_is_asked_in_words() -> None:
    words = {
        "golf",
        "course",
        "mobile",
        "home",
        "park",
        "parking",
        "lot",
        "chap",
        "cha",
        "par",
        "ral",
        "river",
        "over",
        "pass",
    }
    found = [spelt_apart(label, words) for label in ("Golfcourse", "mobilehomepark", "parking_lot", "parkinglot")]
    assert found == ["golf course", "mobile home park", "parking lot", "parking lot"]
    assert [spelt_apart(label, words) for label in ("chaparral", "river", "xyz", "")] == [
        "chaparral",
        "river",
        "xyz",
        "",
    ]
