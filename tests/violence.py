"""A codebook in words that ObyGaze12 does not have: how violent a clip is."""

LEVELS = """\
name = "violence"            # films.codebook.toml
version = "1"
[[levels]]
name = "calm"
[[levels]]
name = "unsure"
label = false                # like NS: in no task
[[levels]]
name = "violent"
"""

GUN = """\
[[concepts]]
name = "Gun"
visual = true
synonyms = ["gun", "pistol"]
"""

TASK = """\
[tasks.calm_violent]
negative = ["calm"]
positive = ["violent"]
"""

VIOLENCE = LEVELS + GUN + TASK


def with_concepts(visual: tuple[str, ...], others: tuple[str, ...] = ()) -> str:
    """Write the codebook with concepts, the visual ones first."""
    result = [f'[[concepts]]\nname = "{name}"\nvisual = true\n' for name in visual]
    result += [f'[[concepts]]\nname = "{name}"\n' for name in others]
    return LEVELS + "".join(result) + TASK
