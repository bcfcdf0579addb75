"""The report of a run: tables, plots, one HTML page. Imports neither torch nor ray."""

from vitnas.report.terminal import ended_text, front_text, summary_text
from vitnas.report.write import write_report

__all__ = ["ended_text", "front_text", "summary_text", "write_report"]
