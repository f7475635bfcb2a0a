"""The way of a file through a run: where it stands after each message, and when it is done."""

from __future__ import annotations

from evidex.data.discover import FoundFile
from evidex.retrieval.indexing.decode_worker import Finished, Same
from evidex.retrieval.indexing.files_under_way import FilesUnderWay, Stage

FILE = FoundFile("a.png", 10, 1, 1)
END = Finished("a.png", "0" * 64, False, FILE, 2, 2, 0, None)


def _stages(files: FilesUnderWay) -> dict[str, list[str]]:
    return {stage.value: [state.path for state in files.at(stage)] for stage in Stage if files.at(stage)}


def test_a_decoded_file_is_done_when_its_last_row_is_committed() -> None:
    files = FilesUnderWay()
    files.picture("a.png")
    files.picture("a.png")
    assert _stages(files) == {"opened": ["a.png"]}
    files.row_is_committed("a.png")
    files.finished(END)
    assert _stages(files) == {"decoded": ["a.png"]}
    (state,) = files.at(Stage.DECODED)
    assert (state.uncommitted, state.blank, state.end) == (1, 0, END)
    files.picture_is_blank("a.png")
    assert (state.uncommitted, state.blank) == (0, 1)
    files.leave(state)
    assert _stages(files) == {}


def test_a_copy_whose_source_is_gone_is_asked_again_from_the_start() -> None:
    files = FilesUnderWay()
    files.same(Same("a.png", "0" * 64, False, FILE))
    assert _stages(files) == {"copying": ["a.png"]}
    (state,) = files.at(Stage.COPYING)
    files.ask_again(state)
    assert _stages(files) == {"again": ["a.png"]}
    assert files.again() == [FILE]
    assert _stages(files) == {}


def test_a_file_may_fail_at_any_time_and_what_came_of_it_may_still_be_committed() -> None:
    files = FilesUnderWay()
    files.failed("b.png")
    files.picture("a.png")
    files.failed("a.png")
    assert _stages(files) == {"unreadable": ["b.png", "a.png"]}
    files.row_is_committed("a.png")
    assert [state.uncommitted for state in files.at(Stage.UNREADABLE)] == [0, 0]
