"""How much ``import geodp`` adds to ``import geopandas, h3``: at most a fifth.

Each import runs in an interpreter of its own, in turn; the least CPU time of each counts, since a busy machine
only ever adds to it.

    python benchmarks/import_time.py --trials 9
"""

import argparse
import subprocess
import sys

BASE, OURS = "import geopandas, h3", "import geodp"
LIMIT = 1.2


def seconds(statement: str) -> float:
    code = f"import time; start = time.process_time(); {statement}; print(time.process_time() - start)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=9)
    trials = parser.parse_args().trials
    times = {statement: [] for statement in (BASE, OURS)}
    for _ in range(trials):
        for statement in times:
            times[statement].append(seconds(statement))
    base, ours = (min(found) for found in times.values())
    print(f"{BASE}: {base:.2f} s    {OURS}: {ours:.2f} s    ratio {ours / base:.2f} (limit {LIMIT})")


if __name__ == "__main__":
    main()
