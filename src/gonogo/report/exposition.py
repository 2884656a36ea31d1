"""Metrics of a run as Prometheus reads them: its text exposition format, version 0.0.4.

For a node exporter's textfile collector or a push gateway. Names of steps and kinds of faults may hold anything,
so that every label's value is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gonogo.journal.metrics import Family, Metric, Sample
from gonogo.report.layout import plain


def exposition(metrics: Iterable[Metric]) -> str:
    """HELP, TYPE and a line for each sample, ending in a line end; a family without samples is named all the same."""
    return "".join(f"{line}\n" for metric in metrics for line in _lines(metric))


def _lines(metric: Metric) -> Iterator[str]:
    family = metric.family
    yield f"# HELP {family.name} {_escaped(family.help)}"
    yield f"# TYPE {family.name} {family.kind}"
    for sample in metric.samples:
        yield f"{family.name}{_labels(family, sample)} {_number(sample.value)}"


def _labels(family: Family, sample: Sample) -> str:
    pairs = zip(family.labels, sample.values, strict=True)
    told = ",".join(f'{name}="{_quoted(value)}"' for name, value in pairs)
    return f"{{{told}}}" if told else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    """A label's value. The format escapes three signs only, so what can't be printed is told in plain signs before."""
    told = "\n".join(plain(line) for line in text.split("\n"))
    return _escaped(told).replace('"', '\\"')


def _number(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return str(value) if isinstance(value, int) else repr(float(value)).removesuffix(".0")
