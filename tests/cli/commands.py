"""What the tests of the command line type again and again."""

__all__ = ["ASKED", "NYC", "WHERE", "WHO"]

NYC = "-74.3,40.4,-73.6,41.0"
WHO = ["--subject", "rider", "--cap", "3"]
WHERE = ["--bounds", NYC, "--grid", "h3:6", "--outside", "drop"]
ASKED = [*WHO, *WHERE, "--eps", "1", "--delta", "1e-6"]
