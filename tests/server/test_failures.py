"""A request that cannot be understood is answered with the value, the cause and what would do."""

from typing import Any

import pytest
from pydantic import ValidationError

from evidex.server.failures import validation_line
from evidex.server.schemas import SearchRequest


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ({"text": "a", "top": True}, "top is true; give a number"),
        ({"text": "a", "top": None}, "top is null; give a whole number"),
        ({"text": "a", "top": 1.5}, "top is 1.5; give a whole number"),
        ({"text": "a", "top": "many"}, 'top is "many"; give a whole number'),
        ({"text": "a", "max_cloud": 120}, "max_cloud is 120; give 100 or less"),
        ({"text": "a", "max_cloud": False}, "max_cloud is false; give a number"),
        ({"text": "a", "bbox": [1, 2, True, 4]}, "bbox.2 is true; give a number"),
        ({"text": "a", "bbox": [1, 2]}, "bbox is [1, 2]; give at least 4, here are 2"),
        ({"text": "a", "copies": "perhaps"}, 'copies is "perhaps"; give true or false'),
        ({"text": 5}, "text is 5; give a text"),
        ({"text": "a", "mode": "q"}, "mode is \"q\"; give 'auto', 'plain' or 'careful'"),
        ({"text": "a", "glob": "x" * 400}, f'glob is "{"x" * 59}…; give at most 300 characters'),
        ([1, 2], 'the body is [1, 2]; send an object such as {"text": "a river"}'),
        ({"tex": "a"}, "'tex' is unknown; see /openapi.json for what can be sent"),
    ],
)
def test_the_first_fault_is_told_in_a_line(body: Any, line: str) -> None:
    with pytest.raises(ValidationError) as caught:
        SearchRequest.model_validate(body)
    assert validation_line(caught.value) == line
