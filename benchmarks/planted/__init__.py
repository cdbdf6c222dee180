"""Planted truths: each figure of coverage, power, recall or attack that docs/ states, as a row of its own.

A row names a world whose truth is planted, the public command that is asked about it, what is stated, and
within which bounds. Run by hand: ``python -m benchmarks.planted [NAME ...]`` prints tables,
``--write`` puts them into their pages, ``--small`` draws a few corpora, as `tests/test_planted.py` does with
every row. Worlds that several rows draw from are in `benchmarks.planted.worlds`. A block names the worst cell
of each figure that has a bound, and an error for each column. A new row is an entry of ``ROWS`` in its
room's module, and a line ``<!-- planted: NAME -->`` with ``<!-- end -->`` below it in its page.
"""
