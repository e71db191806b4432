#!/usr/bin/env python3
"""
Runs all mount tests, or those of the modules named; the last line is "N passed, N failed, N skipped".

All tests run in as many processes as there are CPUs, a module in each, the longest modules first.
"""
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import unittest

FOLDER = os.path.dirname(os.path.abspath(__file__))
COUNTS = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")


class Result(unittest.TextTestResult):
    """Counts a test once, however many of its subtests fail."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.n_passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.n_passed += 1

    def n_failed(self):
        tests = [test for test, _ in self.failures + self.errors] + self.unexpectedSuccesses
        return len({getattr(test, "test_case", test).id() for test in tests})


def run_modules(names):
    sys.path.insert(0, FOLDER)
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    result = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(suite)
    return result.n_passed, result.n_failed(), len(result.skipped)


def run_process(name):
    """Run a module in a process of its own. Returns its output and counts."""
    done = subprocess.run([sys.executable, __file__, name], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    lines = done.stdout.splitlines()
    counts = COUNTS.match(lines[-1]) if lines else None
    # A module that died before it had counted anything has failed.
    return done.stdout, tuple(map(int, counts.groups())) if counts else (0, 1, 0)


def run_all():
    paths = sorted(glob.glob(os.path.join(FOLDER, "test_*.py")), key=os.path.getsize, reverse=True)
    names = [os.path.basename(path).removesuffix(".py") for path in paths]
    totals = [0, 0, 0]
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for name, (output, counts) in zip(names, pool.map(run_process, names)):
            print(f"\n-- {name} --\n{output}", flush=True)
            totals = [total + count for total, count in zip(totals, counts)]
    return totals


passed, failed, skipped = run_modules(sys.argv[1:]) if sys.argv[1:] else run_all()
print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
sys.exit(failed > 0 or passed == 0)
