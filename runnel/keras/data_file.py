"""``tf.keras.utils.get_file``: a file of data, from where it was kept or from its address."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import urllib.request
import zipfile
from pathlib import Path


def get_file(
    fname: str,
    origin: str,
    untar: bool = False,
    md5_hash: str | None = None,
    file_hash: str | None = None,
    cache_subdir: str = "datasets",
    hash_algorithm: str = "auto",
    extract: bool = False,
    archive_format: str = "auto",
    cache_dir: str | None = None,
) -> str:
    """The path of a file, which is fetched from ``origin`` unless it is there already.

    It is kept in ``~/.keras/datasets``, or in ``cache_subdir`` of ``cache_dir``. With
    ``file_hash`` (SHA-256 or MD5) a file that differs is fetched again.

    Example:
        >>> path = tf.keras.utils.get_file("words.txt", "https://example.com/words.txt")
    """
    wanted = file_hash or md5_hash
    folder = Path(cache_dir or Path.home() / ".keras").expanduser() / cache_subdir
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / (f"{fname}.tar.gz" if untar else fname)
    if not target.exists() or (wanted is not None and not _matches(target, wanted)):
        part = target.with_name(target.name + ".part")
        with urllib.request.urlopen(origin) as source, part.open("wb") as file:
            shutil.copyfileobj(source, file)
        if wanted is not None and not _matches(part, wanted):
            part.unlink()
            raise ValueError(f"The file at {origin} does not have the hash {wanted}")
        os.replace(part, target)
    if untar or extract:
        _extract(target, folder)
    return str(folder / fname) if untar else str(target)


def _matches(path: Path, wanted: str) -> bool:
    digest = hashlib.sha256() if len(wanted) == 64 else hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest() == wanted


def _extract(path: Path, folder: Path) -> None:
    if tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
