"""Other names of labels: what the table holds, whom a name holds for, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from evidex.data.label_names import LabelNames
from evidex.errors import DataError

ROOT = Path(__file__).resolve().parents[2]


def _table(folder: Path, *lines: str) -> Path:
    path = folder / "names.tsv"
    path.write_text("\n".join(("# a comment", "label\tnames", "", *lines)) + "\n")
    return path


def test_names_are_found_however_a_label_is_written(tmp_path: Path) -> None:
    names = LabelNames.read(_table(tmp_path, "storage tanks\toil tanks|tank farm", "port\tharbour|ships"))
    assert names.of("StorageTank") == names.of("storage_tanks") == ("oil tanks", "tank farm")
    assert names.of("desert") == ()
    labels = ["storagetanks", "port", "desert", "harbor"]
    assert names.holding(labels, "oil tank") == [True, False, False, False]
    assert names.holding(labels, "ship") == [False, True, False, False]
    assert names.holding(labels, "desert") == [False, False, True, False]
    assert names.holding(labels, "toothbrush") == [False] * 4


def test_a_name_may_hold_for_several_labels(tmp_path: Path) -> None:
    names = LabelNames.read(_table(tmp_path, "dense residential\thouses", "sparse residential\thouses|lone house"))
    labels = ["dense residential", "sparse residential", "school"]
    assert names.holding(labels, "houses") == [True, True, False]
    assert names.holding(labels, "lone house") == [False, True, False]


def test_captions_of_a_label_are_those_of_its_names_too(tmp_path: Path) -> None:
    names = LabelNames.read(_table(tmp_path, "viaduct\toverpass|flyover"))
    labelled = [("overpass", "an overpass ."), ("viaduct", "a viaduct ."), ("church", "a church ."), ("", "nothing .")]
    assert names.captions_of("viaduct", labelled) == labelled[:2]
    assert names.captions_of("overpass", labelled) == labelled[:1]
    assert LabelNames().captions_of("park", labelled) == []


def test_a_caption_of_what_is_called_more_than_the_label_says_nothing_of_the_label(tmp_path: Path) -> None:
    names = LabelNames.read(
        _table(tmp_path, "square\troundabout|plaza", "port\tship|wharf", "ship\tboat", "park\tlake", "pond\tlake")
    )
    labelled = [(label, f"a {label} .") for label in ("roundabout", "ship", "lake", "wharf")]
    assert names.captions_of("square", labelled) == labelled[:1]  # nothing else is called a roundabout
    assert names.captions_of("port", labelled) == labelled[3:]  # a ship is not called a port
    assert names.captions_of("ship", labelled) == labelled[1:2]
    assert names.captions_of("park", labelled) == names.captions_of("pond", labelled) == []  # a lake may be either


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("port", "write labels, a tab"),
        ("port\t", "write labels, a tab"),
        ("port\tHarbour", "lower case"),
        ("port\tharbour||docks", "lower case"),
        ("port,\tharbour", "lower case"),
        ("port\tships lie here.", "'ships lie here.' ends with a full stop; write a blank before it"),
        ("port\tharbour|port", "'port' has the name 'port' twice, or is called so"),
        ("port\tdocks|docks", "stands there twice"),
        ("port,ports\tdocks", "stands there twice"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        LabelNames.read(_table(tmp_path, line))
    assert "line 4" in str(caught.value)


def test_a_label_may_stand_in_several_lines_and_several_in_one(tmp_path: Path) -> None:
    names = LabelNames.read(
        _table(tmp_path, "port\tharbour", "river,ports\tboats|the boats lie still .", "river\tstream")
    )
    assert names.of("port") == ("harbour", "boats", "the boats lie still .")
    assert names.of("river") == ("boats", "the boats lie still .", "stream")
    with pytest.raises(DataError, match="line 5: 'port' has the name 'boats' twice"):
        LabelNames.read(_table(tmp_path, "ports\tboats", "port\tboats"))


def test_the_columns_are_named(tmp_path: Path) -> None:
    (tmp_path / "bare.tsv").write_text("port\tharbour\n")
    with pytest.raises(DataError, match="no columns label, names"):
        LabelNames.read(tmp_path / "bare.tsv")


def test_the_table_that_the_recipe_names_can_be_read() -> None:
    names = LabelNames.read(ROOT / "configs" / "label_names.tsv")
    assert "flyover" in names.of("viaduct")
    assert sum(names.holding(["dense residential", "medium residential", "sparse residential"], "houses")) == 3
