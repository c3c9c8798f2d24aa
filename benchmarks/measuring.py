"""What all benchmarks share: rounds in which everybody takes turns, and the memory that one call takes.

The machine may be busy with other things. So processor time is counted besides the clock, whoever is compared
takes turns with the others, and of a few rounds the best one counts: noise only ever adds time.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

__all__ = ["Took", "apart", "race", "reset_peak", "resident"]

Took = tuple[float, float]


def race(runners: Mapping[str, Callable[[], object]], rounds: int, warm: int = 0) -> dict[str, Took]:
    """Return each runner's least seconds of processor time, and by the clock, over rounds in turn."""
    best: dict[str, Took] = {}
    for number in range(warm + rounds):
        for name, run in runners.items():
            clock, processor = time.perf_counter(), time.process_time()
            run()
            took = time.process_time() - processor, time.perf_counter() - clock
            if number >= warm:
                known = best.get(name, took)
                best[name] = min(known[0], took[0]), min(known[1], took[1])
    return best


def reset_peak() -> None:
    """Forget how large this process has been, where the system can (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def resident(peak: bool = False) -> float:
    """Return the memory of this process in bytes, now or at its peak."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    wanted = "VmHWM:" if peak else "VmRSS:"
    return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith(wanted))


def apart(module: str, call: str) -> list[float]:
    """Return the numbers that ``call`` prints in a Python of its own, so that nothing else is in its memory."""
    code = f"import warnings; warnings.simplefilter('ignore'); from {module} import *; print(*{call})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return [float(word) for word in done.stdout.split()]
