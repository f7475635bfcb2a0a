"""Function words name nothing: nothing that an archive is asked for is made of them alone."""

from evidex.data.function_words import FUNCTION_WORDS
from evidex.encoders.domain import words_of
from evidex.retrieval.certainty.common_questions import COMMON_QUESTIONS


def test_what_is_asked_for_has_a_word_that_names_it() -> None:
    for text in COMMON_QUESTIONS:
        assert words_of([text]) - FUNCTION_WORDS, text


def test_they_are_single_words_in_lower_case() -> None:
    assert {word for word in FUNCTION_WORDS if words_of([word]) != {word}} == set()
    assert {"the", "of", "between", "without"} <= FUNCTION_WORDS
