"""Bytes that many may hold together."""

from collections.abc import Hashable


class Budget:
    """most : bytes of all together."""

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0
        self._sizes: dict[Hashable, int] = {}

    def hold(self, who: Hashable, size: int) -> bool:
        """Somebody holds so many bytes from now on, 0 for none -> is there room? If not, nothing has changed."""
        before = self._sizes.get(who, 0)
        if size > before and self.held + size - before > self.most:
            return False
        self.held += size - before
        if size:
            self._sizes[who] = size
        else:
            self._sizes.pop(who, None)
        return True
