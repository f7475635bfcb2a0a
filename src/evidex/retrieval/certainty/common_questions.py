"""What people usually ask of overhead imagery: the yardstick for a gallery that has no captions of its own."""

from __future__ import annotations

_THINGS = (
    "planes parked at an airport terminal",
    "an airport runway",
    "a baseball field",
    "a sandy beach with waves",
    "a bridge over a wide river",
    "a town centre with tall buildings",
    "a church with a square in front",
    "a commercial district with large roofs",
    "dense houses in rows",
    "a desert with dunes",
    "farmland in rectangles",
    "a dense forest",
    "an industrial area with factories",
    "a green meadow",
    "houses with gardens and trees",
    "a mountain with snow",
    "a park with a lake and paths",
    "cars in a parking lot",
    "a playground with a running track",
    "a pond between fields",
    "ships in a harbour",
    "a railway station with many tracks",
    "a resort with swimming pools",
    "a winding river",
    "a school with sports grounds",
    "scattered houses in the countryside",
    "a square with a fountain",
    "a football stadium",
    "round storage tanks",
    "a viaduct with crossing roads",
    "a motorway with traffic",
    "tennis courts beside trees",
    "a roundabout",
    "bare land without plants",
    "a solar farm",
    "greenhouses in a row",
)
_FORMS = ("{}", "{} seen from above")
_BARE = (
    "airport", "planes", "baseball field", "beach", "bridge", "buildings", "church", "shops", "houses", "desert",
    "farmland", "forest", "factory", "meadow", "gardens", "mountain", "park", "cars", "playground", "pond", "ships",
    "railway", "swimming pool", "river", "school", "cottage", "square", "stadium", "tanks", "viaduct", "motorway",
    "tennis court", "roundabout", "bare soil", "solar panels", "greenhouse",
)  # fmt: skip
"""One or two words are how people search."""

COMMON_QUESTIONS: tuple[str, ...] = tuple(form.format(thing) for thing in _THINGS for form in _FORMS) + _BARE
