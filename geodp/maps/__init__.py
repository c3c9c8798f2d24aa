"""Maps of releases that do not show noise as data: what can be told, in which colours, in which words, and drawn.

``held``, ``rules``, ``scales``, ``words`` and ``pictures`` decide what a map says, from the released frame and
its record alone, and draw nothing; the other modules draw what they decided.
"""

__all__: list[str] = []
