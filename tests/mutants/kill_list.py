"""Write KILLED.md from the table: ``python tests/mutants/kill_list.py``."""

import sys

from mutating import KILL_LIST, kill_list

if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(__doc__)
    KILL_LIST.write_text(kill_list(), encoding="utf-8")
    print(f"wrote {KILL_LIST}")
