"""The names that released columns take, and that keys and slots therefore cannot have."""

__all__ = ["TAKEN_NAMES"]

# Compared without case: files such as GeoPackage do not tell upper from lower.
TAKEN_NAMES = frozenset(
    {
        *("geometry", "count", "noisy_count", "estimate", "lower", "upper", "edge", "n", "level", "geodp"),
        *("sum", "noisy_sum", "mean", "noisy_mean", "weighted_count", "noisy_weighted_count"),
        *("centroid", "lon", "lat", "error_m", "share", "total", "noisy_total"),
    }
)
