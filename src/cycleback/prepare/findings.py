"""What a reader notices on its way, one line a kind of thing however many videos it concerns."""


class Findings:
    """Collects notices; each kind is counted and shown with its first case."""

    def __init__(self) -> None:
        self._kinds: dict[str, list[str]] = {}

    def add(self, kind: str, case: str) -> None:
        """Note one `case` of `kind`, such as "videos without labels" and "squat/0123"."""
        self._kinds.setdefault(kind, []).append(case)

    def lines(self) -> tuple[str, ...]:
        """One line a kind: what, how many, and the first case."""
        return tuple(
            f"{kind}: {len(cases)} ({'first: ' if len(cases) > 1 else ''}{cases[0]})"
            for kind, cases in self._kinds.items()
        )
