"""Users' settings for devices: speed or the same result each time, and the precision of products.

In and out: the attributes of `SETTINGS`. Set through `nbgrad.cuda`, read where recipes are made; a program that was
made under other settings is planned again when it is called.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Settings:
    """`deterministic`: no sum depends on the order in which threads run. `allow_tf32`: products of float32 matrices may
    round their factors to 11 bits."""

    deterministic: bool = False
    allow_tf32: bool = False

    @property
    def state(self) -> tuple[bool, bool]:
        """All of them."""
        return self.deterministic, self.allow_tf32


SETTINGS = Settings()
