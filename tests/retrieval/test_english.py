from __future__ import annotations

import pytest

from evidex.retrieval.english import articled, head, plural, plural_word, singular, singular_word

PAIRS = [
    ("ship", "ships"), ("church", "churches"), ("city", "cities"), ("runway", "runways"), ("house", "houses"),
    ("beach", "beaches"), ("box", "boxes"), ("bus", "buses"), ("campus", "campuses"), ("glass", "glasses"),
    ("aircraft", "aircraft"), ("man", "men"), ("child", "children"), ("base", "bases"), ("size", "sizes"),
    ("bridge", "bridges"), ("ferry", "ferries"), ("bush", "bushes"), ("terrace", "terraces"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "many"), PAIRS)
def test_one_and_many_lead_to_each_other_and_stay_where_they_are(one: str, many: str) -> None:
    assert plural_word(one) == many
    assert singular_word(many) == one
    assert singular_word(one) == one
    assert plural_word(many) == many


def test_the_head_of_a_phrase_is_changed_not_what_follows() -> None:
    assert singular("the churches with a spire") == "church with a spire"
    assert plural("a white boat at the piers") == "white boats at the piers"
    assert plural("tennis court") == "tennis courts"
    assert [head(phrase) for phrase in ("pool table", "a white boat at the piers", "tanks")] == [
        "table",
        "boat",
        "tanks",
    ]


@pytest.mark.parametrize(
    ("bare", "with_article"),
    [
        ("airport", "an airport"),
        ("university", "a university"),
        ("unusual roof", "an unusual roof"),
        ("port", "a port"),
        ("european town", "a european town"),
        ("umbrella", "an umbrella"),
    ],
)
def test_the_article_follows_the_sound(bare: str, with_article: str) -> None:
    assert articled(bare) == with_article
