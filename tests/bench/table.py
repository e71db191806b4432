"""The table of the bench. Every row is measured in rounds, and each round gives a ratio."""

import statistics
import sys

WIDTH = 36


def number(value):
    """Format with three significant digits, or more if the integer part has more."""
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


class Group:
    """Rows that share one target."""

    def __init__(self, wanted):
        self.wanted = wanted
        self.n_rows = self.n_met = 0
        self.least_margin, self.worst = None, ""

    def add(self, margin, text):
        self.n_rows += 1
        self.n_met += margin >= 0
        if self.least_margin is None or margin < self.least_margin:
            self.least_margin, self.worst = margin, text


class Table:
    """Prints rows as they come, and a summary per group at the end."""

    def __init__(self, rounds):
        self.rounds = rounds
        self.groups = {}

    def progress(self, text):
        """Show on a terminal what is being measured; the next line overwrites it."""
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\033[K{text[:100]}")
            sys.stderr.flush()

    def line(self, text=""):
        self.progress("")
        print(text.rstrip(), flush=True)

    def section(self, title, ours="ggufs", base="null"):
        self.line(f"\n{title}")
        self.line(f"{'':{WIDTH}} {ours:>8} {base:>8} {'':6} {'ratio':>6} {'(range)':20} target")

    def row(self, what, ours, base, unit, target=None, group=None):
        """
        Print a row. `ours` and `base` are the figures of all rounds; `base` may be None. A target
        limits the median of the ratios or of `ours`: ("ratio", ">=", 0.90), ("ours", "<=", 20). The
        summary counts the row under `group`. Returns false if the row misses its target.
        """
        ratios = [a / b for a, b in zip(ours, base)] if base else []
        medians = {"ours": statistics.median(ours)}
        if base:
            medians["ratio"] = statistics.median(ratios)
            shown = f"{medians['ratio']:6.2f} ({min(ratios):.2f}..{max(ratios):.2f})"
        else:
            shown = f"{'':6} ({number(min(ours))}..{number(max(ours))})"
        wanted, verdict = self.judge(what, medians, unit, target, group) if target else ("", "")
        self.line(f"{what:{WIDTH}} {number(medians['ours']):>8}"
                  f" {number(statistics.median(base)) if base else '':>8} {unit:6} {shown:27}"
                  f" {wanted:10} {verdict}")
        return verdict != "BELOW"

    def judge(self, what, medians, unit, target, group):
        """Add a row to its group. Returns the target and the verdict as text."""
        of, sign, bound = target
        value = medians[of]
        margin = value - bound if sign == ">=" else bound - value
        wanted = f"{sign} {bound} {unit}" if of == "ours" else f"{sign} {bound:.2f}"
        entry = self.groups.setdefault(group or what, Group(wanted))
        entry.add(margin, f"{number(value)} {what}")
        return wanted, "ok" if margin >= 0 else "BELOW"

    def summary(self):
        self.line(f"\ntargets\n{'':{WIDTH}} {'rows':>8} {'met':>8} the worst")
        for name, group in self.groups.items():
            verdict = "ok" if group.n_met == group.n_rows else "BELOW"
            self.line(f"{name:{WIDTH}} {group.n_rows:8} {group.n_met:8} {verdict:6}"
                      f" {group.worst} ({group.wanted})")
