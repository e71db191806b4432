#!/usr/bin/env python3
"""Runs all mount tests; the last line is "N passed, N failed, N skipped"."""
import os
import sys
import unittest


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


suite = unittest.defaultTestLoader.discover(os.path.dirname(os.path.abspath(__file__)))
result = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(suite)
print(f"{result.n_passed} passed, {result.n_failed()} failed, {len(result.skipped)} skipped", flush=True)
sys.exit(not result.wasSuccessful() or result.n_passed == 0)
