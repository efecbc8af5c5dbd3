"""What readers raise for files that cannot be read, whatever library reads them."""

from ckm._util.address import hide_secrets, is_address
from ckm._util.stores import with_attempts
from ckm.errors import InputFileError


def unreadable(error: Exception, where: str) -> InputFileError:
    """An error with the first line of the library's message and the name of the file."""
    if isinstance(error, InputFileError):
        return error
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    remedy = "check the file, or write it again"
    if is_address(where):
        reason = hide_secrets(reason)
        if is_failed_request(error):
            reason = with_attempts(reason.rstrip("."), error)
            remedy = "check the network and your credentials, and try again"
    return InputFileError(f"Cannot read {where}: {reason.rstrip('.')}; {remedy}.")


def is_failed_request(error: BaseException) -> bool:
    """Whether an error of a file that is not on this machine is one of the way to it."""
    # Arrow's errors about the contents of a file are OSErrors too. It may not be loaded here.
    return isinstance(error, OSError) and not type(error).__module__.startswith("pyarrow")
