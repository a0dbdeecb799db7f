"""CRC-32C of whole files."""

from pathlib import Path

import google_crc32c

_PIECE = 1 << 22


def file_crc32c(path: Path) -> str:
    """The CRC-32C of a file, as 8 hexadecimal digits.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "x"
        >>> _ = path.write_bytes(b"123456789")
        >>> file_crc32c(path)
        'e3069283'
    """
    checksum = google_crc32c.Checksum()
    with path.open("rb", buffering=0) as file:
        while piece := file.read(_PIECE):
            checksum.update(piece)
    return checksum.digest().hex()
