"""Many releases from many processes into one ledger, while some are killed: nothing unpaid, nothing lost.

    python tests/ledger/soak.py --releases 10000 --workers 8

Each worker releases the labels that are its own, and now and then somebody else's, and writes down what it was
handed: that is what the outside world has seen. The parent kills a random worker about every ``--every`` seconds
and starts it again, and reads the books all the while. The ceiling is what the labels cost without accidents, so
at the end the ledger has to refuse as many labels as were paid for twice. Then everything is compared.
"""

import argparse
import collections
import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from fractions import Fraction
from pathlib import Path

import geopandas as gpd

import geodp
from geodp.errors import BudgetExceeded, IncompleteRelease, LedgerError, ReplayWarning
from geodp.ledger import Ledger

EPS = Fraction(1, 100)
WHO = {"subject": "rider", "cap": 1, "bounds": (0, 0, 1, 1), "grid": "square:0.25"}
PLAN = geodp.plan(EPS, **WHO, estimator="clamp", return_geometry=False)
POINTS = gpd.GeoDataFrame(
    {"rider": ["a", "b", "c"]}, geometry=gpd.points_from_xy([0.1, 0.5, 0.9], [0.1, 0.5, 0.9]), crs=4326
)
SOMEBODY_ELSES = 0.05


def digest(numbers):
    return hashlib.sha256(",".join(map(str, numbers)).encode()).hexdigest()[:32]


def label_of(number):
    return f"night {number}"


class Seen:
    """What one worker was handed, in a file that outlives it; a line that was cut off was not read by anybody."""

    def __init__(self, path):
        self.path = path

    def add(self, *facts):
        line = json.dumps(facts) + "\n"
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(line)

    def read(self):
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        return [json.loads(line) for line in text.split("\n")[:-1]]


def work(place, seen, own, n_labels, seed):
    """Release the labels of one worker, in any order; again after a restart where it stopped."""
    warnings.simplefilter("ignore", ReplayWarning)
    chance = random.Random(seed)
    done = {number for number, *_ in seen.read()}
    todo = [number for number in own if number not in done]
    chance.shuffle(todo)
    book = Ledger(place, timeout=120)
    for number in todo:
        handed(book, seen, number, retry=True)
        if chance.random() < SOMEBODY_ELSES:
            handed(book, seen, chance.randrange(n_labels), retry=False)


def handed(book, seen, number, *, retry):
    """Release a label, and write down the numbers or the refusal; only its owner pays again for a label."""
    label = label_of(number)
    for again in (False, True):
        try:
            frame = PLAN.release(POINTS, ledger=book, label=label, retry=again and retry)
        except IncompleteRelease:
            continue
        except BudgetExceeded:
            seen.add(number, "refused", None)
        except LedgerError as error:
            # Its owner paid again while this process was at it: what this one has drawn goes nowhere.
            if "replaced by a retry" not in str(error) and "already" not in str(error):
                raise
            continue
        else:
            seen.add(number, digest(frame["noisy_count"].tolist()), frame.attrs["geodp"]["ledger"]["entry"])
        return


def start(place, folder, worker, workers, n_labels, seed):
    """Fork a worker; returns its process id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work(place, Seen(folder / f"{worker}.jsonl"), range(worker, n_labels, workers), n_labels, seed)
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(status)


def soak(place, folder, n_labels, workers, every, seed):
    """Let the workers run, kill some, and watch the books; returns what happened."""
    chance = random.Random(seed)
    book = Ledger(place, eps=EPS * n_labels, unit="rider", timeout=120)
    running = {start(place, folder, i, workers, n_labels, chance.random()): i for i in range(workers)}
    kills = failures = looks = 0
    least, begun = float(book.remaining()["eps"]), time.monotonic()
    next_kill = begun + chance.expovariate(1 / every)
    while running:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child:
            worker = running.pop(child)
            if os.WIFSIGNALED(status):
                running[start(place, folder, worker, workers, n_labels, chance.random())] = worker
            elif status:
                failures += 1
            continue
        if time.monotonic() > next_kill:
            os.kill(chance.choice(list(running)), signal.SIGKILL)
            kills += 1
            next_kill = time.monotonic() + chance.expovariate(1 / every)
        least, looks = min(least, book.remaining()["eps"]), looks + 1
        time.sleep(min(0.05, every / 4))
    return {
        "kills": kills,
        "failures": failures,
        "looks": looks,
        "least left": least,
        "seconds": time.monotonic() - begun,
    }


def judged(place, folder, n_labels, workers):
    """Compare the books with what was handed out; returns figures and what is wrong."""
    book = Ledger(place)
    handed_out = [fact for i in range(workers) for fact in Seen(folder / f"{i}.jsonl").read()]
    releases, wrong = book.releases(), []
    states = releases[releases["state"] != "abandoned"].set_index("label")["state"]
    numbers = collections.defaultdict(set)
    for number, found, entry in handed_out:
        if found != "refused":
            numbers[number].add((found, entry))
    for number, found in numbers.items():
        if len(found) > 1:
            wrong.append(f"{label_of(number)} was handed out with different numbers")
        if states.get(label_of(number)) != "released":
            wrong.append(f"{label_of(number)} was handed out and is not paid for and stored")
    for number in range(n_labels):
        if states.get(label_of(number)) != "released":
            continue
        kept = book.stored(label_of(number), PLAN.key)
        facts = (digest(kept.columns["noisy_count"].tolist()), kept.entry["entry"])
        if number in numbers and numbers[number] != {facts}:
            wrong.append(f"{label_of(number)} is stored with other numbers than were handed out")
        numbers[number].add(facts)
    distinct = {found for some in numbers.values() for found, _ in some}
    if len(distinct) < len(numbers):
        wrong.append("two labels have the same noise")
    if Fraction(repr(book.spent()["eps"])) != EPS * len(releases):
        wrong.append("what was spent is not the sum of the entries")
    problems = book.verify()
    reserved = problems["problem"].str.startswith("paid for, but no release is stored")
    wrong += problems[~reserved]["problem"].tolist()
    counts = releases["state"].value_counts().to_dict()
    refused = {number for number, found, _ in handed_out if found == "refused"}
    unanswered = set(range(n_labels)) - set(numbers) - refused
    if unanswered:
        wrong.append(f"{len(unanswered)} labels were neither released nor refused")
    figures = {
        "debits": len(releases),
        "released": counts.get("released", 0),
        "reserved": counts.get("reserved", 0),
        "abandoned": counts.get("abandoned", 0),
        "handed out": len(handed_out),
        "refused": len(refused - set(numbers)),
        "left": book.remaining()["eps"],
    }
    return figures, wrong


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--releases", type=int, default=10_000)
    options.add_argument("--workers", type=int, default=8)
    options.add_argument("--every", type=float, default=0.5, help="mean seconds between kills")
    options.add_argument(
        "--seed", type=int, default=None, help="of the kills and the order of labels; noise has none"
    )
    options.add_argument(
        "--place", default=None, help="a file, or a postgresql:// URL; a temporary file if left out"
    )
    options.add_argument("--json", action="store_true")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="geodp-soak-") as name:
        folder, place = Path(name), asked.place or f"{name}/soak.ledger"
        seed = random.randrange(2**32) if asked.seed is None else asked.seed
        happened = soak(place, folder, asked.releases, asked.workers, asked.every, seed)
        figures, wrong = judged(place, folder, asked.releases, asked.workers)
    if happened["failures"]:
        wrong.append(f"{happened['failures']} workers ended with an error")
    if happened["least left"] < 0:
        wrong.append("more was spent than there was")
    facts = {
        "seed": seed,
        "labels": asked.releases,
        "workers": asked.workers,
        **happened,
        **figures,
        "wrong": wrong,
    }
    if asked.json:
        print(json.dumps(facts))
    else:
        print("\n".join(f"{name:<12}{value}" for name, value in facts.items()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
