"""English words that hold a sentence together and name nothing."""

from __future__ import annotations

from typing import Final

_WORDS: Final = """
a about above across after against all along also although am among an and another any are around as at be
because been before behind being below beneath beside besides between beyond both but by can could did do does
doing down during each either few for from further had has have having he her here hers him his how i if in
inside into is it its itself just many may me might more most much must my near neither no nor not now of off
on once one only onto or other our ours out outside over own same several shall she should since so some such
than that the their theirs them then there these they this those three through to too toward towards two under
until up upon us very via was we were what when where which while who whom whose why will with within without
would you your yours
aren didn doesn don hasn haven isn wasn weren
"""
FUNCTION_WORDS: Final = frozenset(_WORDS.split())
