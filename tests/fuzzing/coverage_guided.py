"""Fuzz geodp's parsers with atheris, which keeps what reaches new code and changes that.

``pip install atheris``, then

    python tests/fuzzing/coverage_guided.py --runs 20000              # every parser, that many inputs each
    python tests/fuzzing/coverage_guided.py --runs 1000000 numbers    # one of them

Each parser runs in a process of its own. An exception that is no refusal ends it and leaves its input under
``--crashes``; what was found so is a test in ``test_found.py``. Atheris is no dependency of the tests.
"""

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def fuzz(name, runs, seed, crashes):
    """Fuzz one parser in this process; does not return."""
    import warnings

    import atheris

    warnings.simplefilter("ignore")
    with atheris.instrument_imports(include=["geodp"]):
        import parsers

        import geodp.cli.running  # noqa: F401
    corpus = Path(tempfile.mkdtemp(prefix="geodp-corpus-"))
    for number, content in enumerate(parsers.seeds(name)):
        (corpus / f"seed{number}").write_bytes(content)
    parse = parsers.PARSERS[name]
    options = [f"-runs={runs}", f"-seed={seed}", "-timeout=60", "-rss_limit_mb=3000", "-max_len=4096"]
    atheris.Setup(
        [sys.argv[0], *options, f"-artifact_prefix={crashes}/{name}-", str(corpus)],
        lambda data: parse(data) and None,
    )
    atheris.Fuzz()


def main():
    """Fuzz the parsers one after the other; exit code 1 if one of them crashed."""
    sys.path[:0] = [str(HERE), str(HERE.parents[1])]
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("parser", nargs="*")
    options.add_argument("--runs", type=int, default=20_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--crashes", default=tempfile.gettempdir())
    options.add_argument("--here", action="store_true", help="in this process, one parser")
    asked = options.parse_args()
    if asked.here:  # before geodp is imported: atheris has to see that
        fuzz(asked.parser[0], asked.runs, asked.seed, asked.crashes)
    if importlib.util.find_spec("atheris") is None:
        sys.exit("atheris is missing: pip install atheris")
    import parsers

    names = asked.parser or list(parsers.PARSERS)
    failed, total = [], 0
    for name in names:
        done = subprocess.run(
            [
                sys.executable,
                __file__,
                "--here",
                name,
                f"--runs={asked.runs}",
                f"--seed={asked.seed}",
                f"--crashes={asked.crashes}",
            ],
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, "GEODP_TESTING": "1"},
        )
        found = re.findall(r"^#(\d+)\s", done.stderr, re.M)
        reached = re.findall(r"cov: (\d+)", done.stderr)
        inputs = int(found[-1]) if found else 0
        total += inputs
        print(
            f"{name:<14}{inputs:>9,} inputs  coverage {reached[-1] if reached else 0}  exit code {done.returncode}",
            flush=True,
        )
        if done.returncode:
            failed.append(name)
            print(done.stdout[-3000:], done.stderr[-2000:], flush=True)
    print(f"{'all':<14}{total:>9,} inputs; failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
