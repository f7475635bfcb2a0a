"""A request that cannot be understood is answered with the value, the cause and what would do."""

from typing import Any

import pytest
from pydantic import ValidationError

from evidex.server.failures import validation_line
from evidex.server.schemas import SearchRequest


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ({"text": "a", "top": 0}, "top is '0'; it should be greater than or equal to 1"),
        ({"text": 5}, "text is '5'; it should be a valid string"),
        ({"text": "a", "mode": "q"}, "mode is 'q'; it should be 'auto', 'plain' or 'careful'"),
        ({"text": "a", "bbox": [1, 2]}, "bbox: list should have at least 4 items after validation, not 2"),
        ({"tex": "a"}, "'tex' is unknown; see /openapi.json for what can be sent"),
    ],
)
def test_the_first_fault_is_told_in_a_line(body: dict[str, Any], line: str) -> None:
    with pytest.raises(ValidationError) as caught:
        SearchRequest.model_validate(body)
    assert validation_line(caught.value) == line
