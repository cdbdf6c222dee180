"""A command that is asked to end says so in a line, and its exit code names the signal."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    os.environ.get("SIMULATED", os.name) in {"windows", "nt"}, reason="Windows has no SIGTERM and no SIGHUP"
)
SLOW = """
import time
from obygaze import cli
class Slow:
    def main(self, **_):
        print("ready", flush=True)
        time.sleep(600)
cli.root_command = Slow
cli.main([])
"""
NO_NOHUP = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)"
"""The tests themselves may run under it."""


@pytest.mark.parametrize(("number", "code"), [(15, 143), (1, 129)])
def test_every_command_ends_with_a_line(number, code):
    with subprocess.Popen(
        [sys.executable, "-c", NO_NOHUP + SLOW], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as command:
        assert command.stdout.readline() == "ready\n"
        command.send_signal(number)
        assert command.communicate()[1] == "obygaze: stopped\n"
    assert command.returncode == code


def test_under_nohup_a_command_outlives_its_terminal():
    with subprocess.Popen(
        ["nohup", sys.executable, "-c", SLOW.replace("600", "1")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stdout.readline() == "ready\n"
        command.send_signal(1)
        command.communicate()
    assert command.returncode == 0
