"""The outcomes of tests, and what is printed about them at the end."""

import collections
import json
import os
from typing import NamedTuple


class Outcome(NamedTuple):
    suite: str
    name: str
    outcome: str  # passed, failed or skipped
    seconds: float
    detail: str  # why it failed or was skipped
    count: int  # of tests that the program does not name


class Outcomes:
    def __init__(self, options):
        """`options` of tests/run come back in the commands that run a test alone."""
        self.options = options
        self.found = []

    def add(self, suite, name, outcome, seconds, detail="", count=1):
        lines = [line[:1000] for line in detail.splitlines()]
        if len(lines) > 80:
            lines[40:-40] = ["…"]
        self.found.append(Outcome(suite, name, outcome, seconds, "\n".join(lines), count))

    def read_results(self, suite, path):
        """A line of JSON for each test, as tests/mount/run.py writes it."""
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for line in file:
                    self.add(suite, *json.loads(line))

    def number_of(self, outcome):
        return sum(found.count for found in self.found if found.outcome == outcome)

    def sum(self):
        skipped = self.number_of("skipped")
        return f"{self.number_of('passed')} passed, {self.number_of('failed')} failed" + \
            (f", {skipped} skipped" if skipped else "")

    def alone(self, outcome):
        name = outcome.name if outcome.suite in ("unit", "mount", "hostile", "fuzz") else ""
        return f"tests/run{self.options} {outcome.suite}{'/' * bool(name)}{name}"

    def during(self, read):
        """Call `read` and return what to print about the failures that it adds."""
        n = len(self.found)
        read()
        return [f"FAILED {found.suite}/{found.name}\n{found.detail.rstrip()}\nalone: {self.alone(found)}\n"
                for found in self.found[n:] if found.outcome == "failed"]

    def print_end(self):
        """Print the slowest tests, the skipped ones by reason, the failed ones, and the sum."""
        slowest = sorted(self.found, key=lambda found: -found.seconds)[:10]
        if len(self.found) > 1:
            print("\nThe slowest:")
            for found in slowest:
                print(f"  {found.seconds:6.1f} s  {found.suite}/{found.name}")
        reasons = collections.defaultdict(list)
        for found in self.found:
            if found.outcome == "skipped":
                reasons[found.detail].append(f"{found.suite}/{found.name}")
        for reason, names in sorted(reasons.items()):
            print(f"\nSkipped, {reason}:")
            for name in names:
                print(f"  {name}")
        failed = [found for found in self.found if found.outcome == "failed"]
        if failed:
            print("\nFailed:")
            for found in failed:
                print(f"  {self.alone(found)}" if found.suite not in ("build", "sanitizers")
                      else f"  {found.suite}: {found.name}\n{found.detail}")
        print(f"\n{self.number_of('passed')} passed, {self.number_of('failed')} failed, "
              f"{self.number_of('skipped')} skipped", flush=True)
        return not failed and self.number_of("passed") > 0
