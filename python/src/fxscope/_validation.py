"""The model compared with measured results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Optional

import pandas

from fxscope._command import Option, PathLike, option_words
from fxscope._html import paragraph
from fxscope._subject import answer

if TYPE_CHECKING:
    from distributed import Client

#: Exit statuses of ``fxscope validate`` with results: 1 if a row is not as its file says.
_STATUSES = (0, 1)


class Validation:
    """The errors of the model against measured rows."""

    def __init__(self, found: Mapping[str, Any], is_expected: bool) -> None:
        #: All results, as ``fxscope validate --format json`` has them.
        self.json = found
        #: Whether all rows are as their files say.
        self.is_expected = is_expected

    def frame(self) -> pandas.DataFrame:
        """Return a line for each row: what was measured, measured and simulated value, error, and the source."""
        return pandas.DataFrame(self.json["rows"])

    def accuracy(self) -> pandas.DataFrame:
        """Return the errors by kind of figure, percent, over rows that the model was not fitted to; ``relative.median`` is the median
        of relative errors."""
        return _spreads({name: found for name, found in self.json["headline"].items() if isinstance(found, dict)}, "kind")

    def families(self) -> pandas.DataFrame:
        """Return the same by family of rows."""
        return _spreads(self.json["families"], "family")

    def _repr_html_(self) -> str:
        expected = "All rows are as their files say." if self.is_expected else "Not all rows are as their files say."
        return paragraph(f"Suite {self.json['suite']}, rows: {len(self.json['rows'])}. {expected}") + self.accuracy().to_html()


def _spreads(found: Mapping[str, Any], name: str) -> pandas.DataFrame:
    return pandas.json_normalize(list(found.values())).set_index(pandas.Index(found, name=name))


def validate(
    suite: str = "quick", *, jobs: Optional[int] = None, cache: Optional[PathLike] = None, client: Optional[Client] = None, **options: Option
) -> Validation:
    """Run the programs of measured rows, and compare. ``suite``: ``quick``, ``full``, a family or a row. ``jobs``: runs at a time.
    ``cache``: folder for what runs count. ``client``: of a Dask cluster, whose workers make the runs. ``options``: others of ``fxscope
    validate``: ``no_cache``, ``folder``, ``libraries``."""
    words = ["validate", *option_words(options), suite]
    if client is not None:
        from fxscope import distributed

        distributed.fill(words, client, cache=cache)
    found, status = answer([*words, *option_words({"jobs": jobs, "cache": cache})], statuses=_STATUSES)
    return Validation(found, status == 0)
