"""The one table of errors."""

import inspect

import evidex.errors as errors


def test_every_error_has_an_outcome_of_its_own() -> None:
    classes = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, errors.EvidexError)]
    assert set(classes) == set(errors._OUTCOMES)


def test_bad_input_exits_with_two_and_is_the_clients_fault() -> None:
    assert errors.outcome(errors.DataError("x")) == errors.Outcome(2, 422)
    assert errors.outcome(errors.ImageTooLargeError("x")).http_status == 413


def test_a_subclass_inherits_its_parents_outcome() -> None:
    class Special(errors.GalleryError):
        pass

    assert errors.outcome(Special("x")) == errors.outcome(errors.GalleryError("x"))
