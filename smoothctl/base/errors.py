"""Errors that a user caused or can mend: one clear line and an exit code, never a traceback."""


class SmoothctlError(Exception):
    """Something failed; the message says what, and what to do about it. Exit code 1."""

    exit_code = 1


class UsageError(SmoothctlError, ValueError):
    """A request that cannot be carried out as it was written. Exit code 2."""

    exit_code = 2


class GateFailed(SmoothctlError):
    """A requirement that a report was to meet is not met. Exit code 3."""

    exit_code = 3
