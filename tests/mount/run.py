#!/usr/bin/env python3
"""Runs all mount tests; the last line is "N passed, N failed, N skipped"."""
import os
import sys
import unittest

suite = unittest.defaultTestLoader.discover(os.path.dirname(os.path.abspath(__file__)))
result = unittest.TextTestRunner(verbosity=2).run(suite)
failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
skipped = len(result.skipped)
sys.stderr.flush()
print(f"{result.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped", flush=True)
sys.exit(failed > 0 or result.testsRun == 0)
