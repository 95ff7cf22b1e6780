"""Arrays that are written piece by piece to .npy files, their length not known in advance."""

from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

_HEADER_SIZE = 128


class ArrayWriter:
    """Append to an .npy file; the header is completed when the block ends."""

    def __init__(self, path: Path, dtype: npt.DTypeLike, columns: int | None = None) -> None:
        self.dtype = np.dtype(dtype)
        self.columns = columns
        self.length = 0
        self._file = path.open("wb")
        self._file.write(b"\0" * _HEADER_SIZE)

    def append(self, values: npt.ArrayLike) -> None:
        """Append an array whose rows have the right number of columns."""
        array = np.ascontiguousarray(values, dtype=self.dtype)
        self.length += len(array)
        self._file.write(array.tobytes())

    def append_bytes(self, data: bytes) -> None:
        """Append raw bytes to an array of uint8."""
        self.length += len(data)
        self._file.write(data)

    def __enter__(self) -> "ArrayWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.seek(0)
        self._file.write(self._header())
        self._file.close()

    def _header(self) -> bytes:
        shape = (self.length,) if self.columns is None else (self.length, self.columns)
        fields = {"descr": self.dtype.str, "fortran_order": False, "shape": shape}
        text = repr(fields).encode("ascii")
        magic = np.lib.format.magic(1, 0)
        room = _HEADER_SIZE - len(magic) - 2
        return magic + room.to_bytes(2, "little") + text.ljust(room - 1) + b"\n"
