"""MindSpore's module `log`: messages with a level, on standard error.

In: a message in the form of Python's logging. Out: a line. Called by users. The environment variable `GLOG_v` chooses
the least level that is shown: 0 debug, 1 info, 2 warning (the default), 3 error, 4 critical.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Any, TextIO

__all__ = ["critical", "debug", "error", "get_level", "info", "warning"]

_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)


class _ToStandardError(logging.StreamHandler[TextIO]):
    """Writes to standard error as it is now, which notebooks and tests exchange."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a message."""
        self.stream = sys.stderr
        super().emit(record)


def _made() -> logging.Logger:
    logger = logging.getLogger("nbgrad")
    if not logger.handlers:
        handler = _ToStandardError()
        handler.setFormatter(logging.Formatter("[%(levelname)s] %(asctime)s [%(pathname)s:%(lineno)d] %(message)s"))
        logger.addHandler(handler)
        logger.propagate = False
    wanted = os.environ.get("GLOG_v", "2")  # noqa: SIM112 - MindSpore's spelling
    logger.setLevel(_LEVELS[int(wanted)] if wanted in ("0", "1", "2", "3", "4") else logging.WARNING)
    return logger


_logger = _made()


def debug(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Write a message for those who look for a fault."""
    _logger.debug(msg, *args, stacklevel=2, **kwargs)


def info(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Write a message about what goes on."""
    _logger.info(msg, *args, stacklevel=2, **kwargs)


def warning(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Write a warning.

    Examples
    --------
    >>> from nbgrad import log
    >>> log.warning("%d images cannot be read", 3)       # on standard error, with the time and the line
    """
    _logger.warning(msg, *args, stacklevel=2, **kwargs)


def error(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Write a message about an error."""
    _logger.error(msg, *args, stacklevel=2, **kwargs)


def critical(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Write a message about an error after which nothing goes on."""
    _logger.critical(msg, *args, stacklevel=2, **kwargs)


def get_level() -> str:
    """The least level that is shown, in `GLOG_v`'s numbers.

    Examples
    --------
    >>> from nbgrad import log
    >>> log.get_level()
    '2'
    """
    return str(_LEVELS.index(_logger.level))
