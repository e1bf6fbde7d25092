"""Programs that a search builds: one for each set of macros, kept by content."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from fxscope._command import Failed, PathLike, Word

#: Digits of a digest in the name of a program's folder.
_DIGITS = 24

_BRACES = re.compile(r"\{\{|\}\}|\{([A-Za-z0-9_.-]+)\}")


def names_in(words: Sequence[Word]) -> set[str]:
    """Return the names in braces."""
    return {name for word in words for name in _BRACES.findall(os.fspath(word) if isinstance(word, os.PathLike) else str(word)) if name}


class Builder:
    """Builds a program by a command in a temporary copy of its sources."""

    def __init__(self, command: Sequence[Word], sources: Sequence[PathLike], program: str, folder: Path) -> None:
        self._command, self._program, self._folder = [str(word) for word in command], program, folder
        self._sources = [Path(source) for source in sources]
        if Path(program).name != program:
            raise ValueError(f"program '{program}': with a build command, name the file that it makes in its folder, without a path")
        if not self._sources:
            raise ValueError("sources are missing: name the files and folders that the build command needs")
        self._base = self._digest_of_sources()

    def built(self, point: Mapping[str, Word]) -> str:
        """Build the program of a point unless it is there, and return the name of its folder. Raises :class:`Failed` with what the command
        says if it fails."""
        words = [self._filled(word, point) for word in self._command]
        digest = hashlib.sha256(self._base.encode())
        for word in words:
            digest.update(word.encode() + b"\0")
        # The letter keeps it from being read as a number.
        name = "b" + digest.hexdigest()[:_DIGITS]
        target = self._folder / name / self._program
        if not target.exists():
            self._build(words, target)
        return name

    def _build(self, words: Sequence[str], target: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="fxscope-") as folder:
            for source in self._sources:
                _copy(source, Path(folder, source.name))
            try:
                made = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
            except OSError as error:
                raise Failed(f"{words[0]}: cannot be executed ({error.strerror})", 126) from error
            if made.returncode != 0:
                raise Failed(f"{' '.join(words)}: exit status {made.returncode}: {made.stderr.strip()}", made.returncode)
            if not Path(folder, self._program).is_file():
                raise Failed(f"{' '.join(words)}: it made no file '{self._program}'", 127)
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_suffix(".draft")
            shutil.copy2(Path(folder, self._program), draft)
            os.replace(draft, target)

    def _filled(self, word: str, point: Mapping[str, Word]) -> str:
        def value(found: re.Match[str]) -> str:
            name = found.group(1)
            if name is None:
                return found.group(0)[0]
            if name == "program":
                return self._program
            if name not in point:
                raise ValueError(f"'{{{name}}}' in the build command is not in the space; write {{{{ and }}}} for braces")
            return str(point[name])

        return _BRACES.sub(value, word)

    def _digest_of_sources(self) -> str:
        """Return a digest of the compiler and of all sources with their names."""
        digest = hashlib.sha256()
        compiler = shutil.which(self._command[0])
        files = [] if compiler is None else [(self._command[0], Path(compiler))]
        for source in self._sources:
            if not source.exists():
                raise Failed(f"{source}: no such file or folder", 127)
            inner = sorted(file for file in source.rglob("*") if file.is_file()) if source.is_dir() else [source]
            files += [(os.path.relpath(file, source.parent), file) for file in inner]
        for name, file in files:
            digest.update(f"{name}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
        return digest.hexdigest()


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy2(source, target)
