"""A process that forks others: to be killed at a given step, or to race each other for a budget.

Run as ``python child.py MODE PLACE ...`` by the tests; prints one JSON line with what happened. It forks
(rather than being started anew) so that hundreds of rounds take seconds.
"""

import json
import os
import random
import resource
import signal
import sqlite3
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

from geodp.accounting import Charge
from geodp.errors import BudgetExceeded, LedgerError
from geodp.ledger import Ledger

COLUMNS = {"count": np.arange(300)}
PACKAGE = str(Path(sys.modules[Ledger.__module__].__file__).parent)
TENTH = Charge(Fraction(1, 10))


def whole_release(ledger, label, say):
    """Do what a release does with its ledger; say each thing the outside world would see."""
    entry = ledger.debit(label, "{}", TENTH, {})
    say("paid")
    ledger.store(entry, COLUMNS)
    say("handed out")


def forked(action):
    """Run ``action(say)`` in a child; return its exit status and what it said before it ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        status = 1
        try:
            status = action(lambda text: os.write(writer, text.encode() + b"\n")) or 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read().split("\n")[:-1]
    return os.waitpid(child, 0)[1], said


def at_line(step):
    """Kill this process as it reaches the ``step``-th line of the package; count the lines if 0."""
    seen = [0]

    def trace(frame, event, _):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            seen[0] += 1
            if seen[0] == step:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)
    return seen


def at_statement(step):
    """Kill this process as SQLite is about to run its ``step``-th statement."""
    connect, seen = sqlite3.connect, [0]

    def counted(_):
        seen[0] += 1
        if seen[0] == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def traced(*args, **kwargs):
        connection = connect(*args, **kwargs)
        connection.set_trace_callback(counted)
        return connection

    sqlite3.connect = traced
    return seen


def at_byte(limit, *, fatal):
    """Let no file grow past ``limit`` bytes: the write there kills, or fails as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL if fatal else signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def kill(place, how, steps):
    """Kill one release at each step; report the label, whether it died, what it said, what was spent."""
    rounds = []
    for number, step in enumerate(steps):
        label = f"{how} {number}"
        ledger = Ledger(place)

        def action(say, step=step, label=label, ledger=ledger):
            if how == "line":
                at_line(step)
            elif how == "statement":
                at_statement(step)
            elif how == "byte":
                at_byte(step, fatal=True)
            elif how == "full":
                at_byte(step, fatal=False)
            whole_release(ledger, label, say)

        if how == "time":
            status, said = killed_after(action, step)
        else:
            status, said = forked(action)
        spent = Ledger(place).spent()["eps"]
        rounds.append({"label": label, "died": os.WIFSIGNALED(status), "said": said, "spent": spent})
    return rounds


def killed_after(action, seconds):
    """Kill a child that releases in a loop after some time, wherever it is then."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            action(lambda text: os.write(writer, text.encode() + b"\n"))
            time.sleep(10)
        finally:
            os._exit(1)
    os.close(writer)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    with os.fdopen(reader) as pipe:
        said = pipe.read().split("\n")[:-1]
    return os.waitpid(child, 0)[1], said


def count(place, how):
    """Return how many steps of this kind one release has."""
    ledger = Ledger(place)

    def action(say):
        seen = {"line": at_line, "statement": at_statement}[how](0)
        whole_release(ledger, f"count {how}", lambda _: None)
        sys.settrace(None)
        say(str(seen[0]))

    _, said = forked(action)
    return int(said[-1])


def race(places, racers):
    """Let ``racers`` processes debit each ledger at once; return how many won each."""
    won = []
    for place in places:
        ledger = Ledger(place)
        gate, opener = os.pipe()
        children = []
        for racer in range(racers):
            child = os.fork()
            if child == 0:
                os.close(opener)
                status = 2
                try:
                    os.read(gate, 1)  # returns in all racers at once, when the gate's other end is closed
                    status = runner(ledger, f"racer {racer}")
                finally:
                    os._exit(status)
            children.append(child)
        os.close(gate)
        time.sleep(0.002)
        os.close(opener)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        won.append({"won": codes.count(0), "refused": codes.count(1), "failed": codes.count(2)})
    return won


def runner(ledger, label):
    try:
        ledger.debit(label, "{}", TENTH, {})
    except BudgetExceeded:
        return 1
    return 0


def unprivileged(place):
    """Try a debit as a user who may only read; return the error and what that user sees."""

    def action(say):
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        ledger = Ledger(place)
        say(json.dumps(ledger.spent()["eps"]))
        try:
            ledger.debit("b", "{}", TENTH, {})
        except LedgerError as error:
            say(str(error))

    return forked(action)[1]


def main():
    mode, place, *rest = sys.argv[1:]
    if mode == "kill":
        how, stride = rest[0], int(rest[1])
        if how in ("line", "statement"):
            last = count(place, how)
            steps = range(random.randint(1, stride), last + 1, stride)
        elif how in ("byte", "full"):
            steps = range(0, int(rest[2]), stride)
        else:
            steps = [random.uniform(0, 0.006) for _ in range(int(rest[2]))]
        result = kill(place, how, steps)
    elif mode == "race":
        result = race([place, *rest[1:]], int(rest[0]))
    else:
        result = unprivileged(place)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
