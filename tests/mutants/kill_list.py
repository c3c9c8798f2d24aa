"""Write KILLED.md from the table: ``python tests/mutants/kill_list.py``."""

from mutating import KILL_LIST, kill_list

if __name__ == "__main__":
    KILL_LIST.write_text(kill_list(), encoding="utf-8")
    print(f"wrote {KILL_LIST}")
