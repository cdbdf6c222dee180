"""A command that is asked to end says so in a line, and its exit code names the signal."""

import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    os.environ.get("SIMULATED", os.name) in {"windows", "nt"}, reason="Windows has no SIGTERM and no SIGHUP"
)
SLEEPING_COMMAND = """
import sys, time
from obygaze import cli
class Slow:
    def main(self, **_):
        print("ready", flush=True)
        time.sleep(float(sys.argv[1]))
cli.root_command = Slow
cli.main([])
"""
"""A command that says `ready` and sleeps for the seconds that are typed."""
DO_NOT_IGNORE_SIGHUP = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)"
"""What a process does first that is not to ignore SIGHUP, as it would where these tests run under nohup."""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_command_stopped_by_a_signal_exits_with_its_code(name):
    """Shells expect 128 plus the number of the signal. One line says that the command was stopped.

    The command would sleep for ten minutes; the signal is sent as soon as it has printed "ready".
    """
    number = getattr(signal, name)
    ten_minutes = "600"
    words = [sys.executable, "-c", DO_NOT_IGNORE_SIGHUP + SLEEPING_COMMAND, ten_minutes]

    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as command:
        assert command.stdout.readline() == "ready\n"
        command.send_signal(number)
        _, err = command.communicate()

    assert err == "obygaze: stopped\n"
    assert command.returncode == 128 + number


def test_under_nohup_a_command_outlives_its_terminal():
    """Under nohup, SIGHUP, which a closing terminal sends, is ignored.

    The command sleeps for a second, and ends by itself.
    """
    one_second = "1"
    words = ["nohup", sys.executable, "-c", SLEEPING_COMMAND, one_second]

    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as command:
        assert command.stdout.readline() == "ready\n"
        command.send_signal(signal.SIGHUP)
        command.communicate()

    assert command.returncode == 0
