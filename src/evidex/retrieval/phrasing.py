"""What is asked for, without the words in which people ask: "show me images of a river" is a question for a river.

Captions describe; they never say "find" or "show me", so such words mean nothing to a model that learned from captions,
and drown what does.
"""

from __future__ import annotations

import re

_POLITE = r"(?:please\s+)?(?:(?:can|could)\s+you\s+(?:please\s+)?)?"
_THING = (  # that begins like a request
    r"(?!(?:show\s+(?:jump\w*|rings?|caves?)|display\s+(?:board|screen|case)s?|search\s+lights?|search\s+and\s+rescue"
    r"|give\s+way|find\s+spots?\s*$|pull\s+ups?\s+bars?)\b)"
)
_LOOK = r"a\s+(?:(?:quick|closer?)\s+)?look\s+(?:at|for)"
_VERB = (
    rf"{_THING}(?:find|show|get|give|display|list(?:\s+of)?|locate|search(?:\s+for)?"
    r"|(?:i(?:'?m|\s+am)\s+)?look(?:ing)?\s+for|let\s+(?:me|us)\s+see|has\s+any(?:one|body)\s+seen"
    rf"|(?:bring|pull)\s+up|fetch|point\s+(?:me|us)\s+to|(?:let\s+(?:me|us)\s+)?(?:have|take)\s+{_LOOK}"
    r"|i(?:\s+(?:want|need)|(?:'d|\s+would)\s+like)(?:\s+(?:you\s+)?to\s+(?:see|find|view|get|show"
    rf"|look\s+(?:at|for)|have\s+{_LOOK}))?)"
    rf"(?:\s+(?:me|us|all|any|every|some))*(?:\s+{_LOOK})?:?\s+"
)
_EXISTENCE = (
    r"(?:(?:where\s+)?(?:is|are)\s+there|where\s+(?:is|are)|(?:do|does)\s+(?:we|you|it)\s+have"
    r"|(?:where\s+)?(?:can|could)\s+(?:i|we|one|you)\s+(?:see|find)|any)\s+(?:any\s+|some\s+)?"
    r"|(?:which|what)\s+(?:images?|pictures?|photos?|scenes?|places?|areas?|sites?|tiles?)\s+"
    r"(?:shows?|contains?|ha(?:s|ve)|depicts?|(?:is|are)(?:\s+(?:full\s+of|used\s+(?:for|as)|only|in|of))?)\s+"
    # What is left of these tells what would be seen: "where do waves break" is a question for breaking waves.
    r"|where\s+(?:do|does|can|could|would|might|should)\s+(?:(?:i|we|one|you)\s+)?"
    r"|(?:which|how\s+many)\s+(?:(?:is|are)\s+)?"
    r"|what\s+(?:do|does|would)\s+(?=.*\blook\s+like\b)"
)
_PICTURES = (
    r"(?:(?:an?|the|all|any|some)\s+)?(?:(?:satellite|aerial|overhead|drone)\s+)?"
    r"(?:images?|imagery|pictures?|photos?|photographs?|scenes?|orthophotos?|views?)\s+"
    r"(?:of|with|showing|containing|depicting|that\s+(?:shows?|contains?)|where\s+there\s+(?:is|are))\s+"
    r"|(?:every|any)thing\s+(?:(?:that\s+looks\s+)?like|with)\s+"
)
_REQUEST = re.compile(rf"\s*(?:{_POLITE}(?:{_VERB}|{_EXISTENCE}))?(?:{_PICTURES})?", re.IGNORECASE)
_PLACE = r"\s+in\s+(?:the|this|my|our)\s+(?:archive|gallery|collection|dataset)"
_SEEN = r"\s+(?:anywhere|somewhere|to\s+be\s+seen|(?:is|are)\s+there)"
_IS = re.compile(r"\s*(?:is|are)\s+", re.IGNORECASE)
_TAKEN = r"\s+(?:as\s+)?(?:seen|viewed|taken|shot|photographed)"
_FROM_ABOVE = (  # as all pictures are taken
    rf"(?:\s+look\s+like)?,?(?:(?:{_TAKEN})?\s+from\s+(?:above|space|the\s+(?:air|sky))"
    rf"|{_TAKEN}\s+from\s+an?\s+(?:plane|aircraft|drone|helicopter|satellite))|\s+look\s+like"
)
_THANKS = r"[\s,]\s*(?:please|thanks|thank\s+you)"
_AFTERWARDS = re.compile(
    rf"(?:(?:(?:{_SEEN})?{_PLACE}|{_SEEN}|{_FROM_ABOVE})(?:{_THANKS})?|{_THANKS})[\s?.!]*$", re.IGNORECASE
)
_LONGEST_END = 60  # characters in which it is looked for: a long text must not cost more than it is worth


def asked_for(text: str) -> str:
    """``text`` without the request around it; as it is where nothing would be left."""
    found = _REQUEST.match(text)
    rest = text if found is None else text[found.end() :]
    end = _AFTERWARDS.search(rest, max(0, len(rest) - _LONGEST_END))
    if end is not None:  # "is a ship anywhere" asks for a ship; "is a ship" would be half a sentence
        rest = _IS.sub("", rest[: end.start()], count=1) if _IS.match(rest) else rest[: end.start()]
    return rest if rest.strip() else text
