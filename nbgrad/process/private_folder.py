"""A folder that only its user or the system's administrator can have put there, held by a descriptor.

In: a path. Out: a descriptor, which stays the same folder whatever becomes of the path. Called by cache.py, because
entries of the cache are executed. The way from the root is gone step by step: a folder that another user owns, or that
all users may write to, could hold another folder of that name at the next moment. Members of a group that may write to
a folder on the way are trusted, because the user put it there.
"""

from __future__ import annotations

import os
import stat

STEPS = 200
"""Names on the way, those in links included; links may go round in circles."""
HANDLE = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
"""The flags for opening folders on the way, which may forbid that they are listed."""


def is_private(status: os.stat_result) -> bool:
    """Whether something is the user's own, and writable by no other user."""
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def open_private(path: str) -> int:
    """A descriptor of a private folder.

    Parameters
    ----------
    path : str
        Folders that are not there are made, with mode 0700.

    Raises
    ------
    OSError
        If it cannot be made or opened, is not private, or another user can put another one in its place.
    """
    if not hasattr(os, "O_DIRECTORY"):
        raise PermissionError(path)
    steps = _names(os.path.join(os.getcwd(), path))
    at = os.open("/", HANDLE)
    try:
        # The owner of the root can do everything. In containers without privileges that may be a nameless user.
        trusted = {0, os.getuid(), os.fstat(at).st_uid}
        for _ in range(STEPS):
            status = os.fstat(at)
            everybody = status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX
            if not steps or status.st_uid not in trusted or everybody:
                break
            name = steps.pop()
            try:
                found = os.stat(name, dir_fd=at, follow_symlinks=False)
            except FileNotFoundError:
                os.mkdir(name, 0o700, dir_fd=at)
                steps.append(name)
                continue
            if not stat.S_ISLNK(found.st_mode):
                below = os.open(name, HANDLE, dir_fd=at)
            elif found.st_uid in trusted:
                target = os.readlink(name, dir_fd=at)
                steps += _names(target)
                below = os.open("/" if target.startswith("/") else ".", HANDLE, dir_fd=at)
            else:
                break
            at, above = below, at
            os.close(above)
        if steps or not is_private(os.fstat(at)):
            raise PermissionError(path)
        return os.open(".", os.O_RDONLY | getattr(os, "O_DIRECTORY", 0), dir_fd=at)
    finally:
        os.close(at)


def _names(path: str) -> list[str]:
    """The names in a path, the last one first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]
