"""Check the values of sbatch options, which Slurm checks hours later, or takes for something else."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from obygaze_features.errors import ExtractError

SHORTEST_S = 600
"""Seconds of the shortest useful job: it is told to stop three to four minutes before its end."""

MIN_MB = 1000
"""Megabytes below which memory is taken for a number of gigabytes without its unit."""


@dataclass(frozen=True, slots=True)
class Format:
    """How the value of an option is written.

    Parameters
    ----------
    pattern
        Regular expression of the whole value.
    words
        A description of the value with an example, for messages.
    """

    pattern: str
    words: str


_NAMES = r"[\w.+-]+(,[\w.+-]+)*"
_WHOLE = r"[1-9]\d*"
FORMATS: Mapping[str, Format] = {
    "time": Format(
        r"(\d+-)?\d+(:\d+){0,2}|UNLIMITED|INFINITE",
        "minutes, hours:minutes:seconds or days-hours, as in 08:00:00",
    ),
    "mem": Format(r"\d+[KMGT]?", "a number and K, M, G or T, as in 48G"),
    "mem-per-cpu": Format(r"\d+[KMGT]?", "a number and K, M, G or T, as in 4G"),
    "partition": Format(_NAMES, "names of partitions, commas between them, as in gpu"),
    "account": Format(_NAMES, "the name of an account"),
    "qos": Format(_NAMES, "the name of a quality of service"),
    "cpus-per-task": Format(_WHOLE, "a whole number, as in 16"),
    "nodes": Format(rf"{_WHOLE}(-{_WHOLE})?", "a whole number, as in 3"),
    "gres": Format(
        r"none|[\w.-]+(:[\w.-]+){0,2}(,[\w.-]+(:[\w.-]+){0,2})*",
        "what, of which type, how many, as in gpu:a100:1",
    ),
    "gpus": Format(rf"([\w.-]+:)?{_WHOLE}", "a number, or a type and a number, as in a100:1"),
    "gpus-per-node": Format(rf"([\w.-]+:)?{_WHOLE}", "a number, or a type and a number, as in a100:1"),
}
"""Option -> how its value is written; others are left to Slurm."""


def check_option(name: str, value: str) -> None:
    """Raise an error for an sbatch value that Slurm would refuse hours later, or read in an unexpected unit.

    Parameters
    ----------
    name
        Long name of an option of sbatch.
    value
        The value, as it would stand in a script.

    Raises
    ------
    ExtractError
        If it is not in the option's format, or the time or the memory is too little for any job.
    """
    _check_format(name, value)
    if name == "time":
        _check_time_limit(value)
    if name.startswith("mem"):  # mem and mem-per-cpu
        _check_memory(name, value)


def _check_format(name: str, value: str) -> None:
    """Raise an error unless the value of an sbatch option is written as the option demands.

    `FORMATS` has the formats of the common options; the values of others are left to Slurm.
    """
    value_format = FORMATS.get(name)
    if value_format is not None and not re.fullmatch(value_format.pattern, value, re.ASCII):
        raise ExtractError(f"--sbatch {name}={value}: expected {value_format.words}")


def _check_time_limit(value: str) -> None:
    """Raise an error if a time limit, as sbatch reads it, ends the job before it can do anything useful.

    The usual cause is a limit meant as hours, such as "08:00", which Slurm reads as eight minutes.
    """
    limit_s = seconds(value)
    if limit_s is not None and limit_s < SHORTEST_S:
        raise ExtractError(
            f"--sbatch time={value}: {limit_s:,} s is too short for a turn, which needs {SHORTEST_S} s "
            "(a number alone is minutes, two are minutes:seconds)"
        )


def _check_memory(name: str, value: str) -> None:
    """Raise an error for a small number without a unit, such as mem=48: Slurm would read 48 megabytes."""
    is_without_unit = value.isdecimal()
    if is_without_unit and 0 < int(value) < MIN_MB:  # 0 stands for all memory that a node has
        raise ExtractError(f"--sbatch {name}={value}: Slurm reads megabytes; {value}G are gigabytes")


def seconds(time: str) -> int | None:
    """Convert a time limit in the formats of sbatch to seconds; None if there is no limit.

    Examples
    --------
    >>> seconds("30"), seconds("30:00"), seconds("08:00:00"), seconds("1-12"), seconds("UNLIMITED")
    (1800, 1800, 28800, 129600, None)
    """
    if not time[:1].isdecimal():  # UNLIMITED or INFINITE
        return None
    if "-" in time:  # days-hours[:minutes[:seconds]]
        days, _, clock = time.partition("-")
        hours, minutes, clock_s = _three_numbers(clock)
        return ((int(days) * 24 + hours) * 60 + minutes) * 60 + clock_s
    if time.count(":") == 2:  # hours:minutes:seconds
        hours, minutes, clock_s = _three_numbers(time)
        return (hours * 60 + minutes) * 60 + clock_s
    minutes, clock_s, _ = _three_numbers(time)  # minutes[:seconds]
    return minutes * 60 + clock_s


def _three_numbers(clock: str) -> tuple[int, int, int]:
    """Split a time of up to three numbers at its colons; those that it lacks are 0: (8, 30, 0) for "8:30"."""
    numbers = [int(number) for number in clock.split(":")]
    first, second, third = (*numbers, 0, 0)[:3]
    return first, second, third
