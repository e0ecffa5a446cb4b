"""What Python's reader of zip archives raises of one that is damaged, encrypted or packed in a
way that it does not have. It is not of one family, and is listed once."""

from __future__ import annotations

import zipfile
import zlib

NO_ARCHIVE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
