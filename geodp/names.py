"""The names that released columns take, and that keys and slots therefore cannot have."""

__all__ = ["TAKEN_NAMES", "check_text"]

# Compared without case: files such as GeoPackage do not tell upper from lower.
TAKEN_NAMES = frozenset(
    {
        *("geometry", "count", "noisy_count", "estimate", "lower", "upper", "edge", "n", "level", "geodp"),
        *("sum", "noisy_sum", "mean", "noisy_mean", "weighted_count", "noisy_weighted_count"),
        *("centroid", "lon", "lat", "error_m", "share", "total", "noisy_total"),
    }
)


def check_text(text: str, name: str) -> str:
    """Return ``text`` if it can be written to files: half a surrogate pair, which is no character, cannot.

    Examples
    --------
    >>> check_text("ridër", "subject")
    'ridër'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        pass
    else:
        return text
    raise ValueError(f"{name} holds half a surrogate pair, which is no character: {text[:40]!a}.")
