"""The names of files that hold secrets."""

from __future__ import annotations

from weft.data_tables import read_table

_PATTERNS = ("example", "sample", "template", "dist", "defaults", "schema")
"""How a `.env.NAME` is called that holds no secret but shows what one looks like."""
_PRIVATE_KEYS = frozenset({"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"})


def credential_files() -> list[str]:
    """What programs keep credentials in, below the home folder; folders end in `/`."""
    return [name for name, *_ in read_table(__file__, "tables/credential_files.tsv", 4)]


def is_secret_file(name: str) -> bool:
    """True for `.env` and its likes, but not for those that only show what one looks like."""
    if name in (".env", ".envrc"):
        return True
    return name.startswith(".env.") and name.rpartition(".")[2] not in _PATTERNS


class SecretNames:
    """Tells by its path in a project whether a file is one that holds secrets."""

    def __init__(self) -> None:
        names = credential_files()
        self._folders = tuple(f"/{name}" for name in names if name.endswith("/"))
        self._files = tuple(f"/{name}" for name in names if not name.endswith("/"))
        self._is_quick = all(name.startswith(".") for name in names)

    def has(self, path: str) -> bool:
        """True for `.env` and its likes, for private keys, and for what programs keep credentials
        in below the home folder: a project may be that folder, or hold a copy of it.
        """
        name = path.rpartition("/")[2]
        if is_secret_file(name) or name in _PRIVATE_KEYS:
            return True
        place = f"/{path}"
        # Asked of every file of a project, and hardly any has a part that begins with a dot.
        if self._is_quick and "/." not in place:
            return False
        return place.endswith(self._files) or any(each in place for each in self._folders)
