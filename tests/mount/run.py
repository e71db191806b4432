#!/usr/bin/env python3
"""
Runs mount tests in this process: run.py [--mark=MARK] [--results=FILE] NAME…

A NAME is MODULE, MODULE/TEST, TEST, or a name of unittest such as MODULE.CLASS.TEST. --mark leaves
out tests without this mark (mounting.mark). --results writes a line of JSON for each test when it
ends: [name, outcome, seconds, detail]. The last line is "N passed, N failed, N skipped".
`tests/run mount` runs all modules side by side.
"""
import glob
import json
import os
import sys
import time
import unittest
import warnings

FOLDER = os.path.dirname(os.path.abspath(__file__))
PATHS = [path for top in (FOLDER + "/*", os.path.join(FOLDER, "..", "hostile"))
         for path in glob.glob(os.path.join(top, "test_*.py"))]
MODULES = {os.path.basename(path)[:-3]: path for path in PATHS}


class Result(unittest.TextTestResult):
    """Notes the outcome of each test once, however many of its subtests fail."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.outcomes = {}  # by id: modules have tests of one name in several classes
        self.begin = time.monotonic()
        self.file = open(os.devnull, "w", encoding="utf-8")  # pylint: disable=consider-using-with

    def startTest(self, test):
        super().startTest(test)
        self.begin = time.monotonic()

    def note(self, test, outcome, detail):
        """Keep the worst outcome and all details of a test."""
        key = getattr(test, "test_case", test).id()
        before, text = self.outcomes.get(key, (None, ""))
        ranks = ("passed", "skipped", "failed")
        if before and ranks.index(before) > ranks.index(outcome):
            outcome, detail = before, ""
        elif before and before != outcome:
            text = ""
        elif outcome == "skipped" and detail in text:  # subtests have one reason
            detail = ""
        self.outcomes[key] = outcome, text + detail

    def stopTest(self, test):
        super().stopTest(test)
        self.write(test)

    def write(self, test):
        outcome, detail = self.outcomes.get(test.id(), ("failed", "no outcome"))
        seconds = round(time.monotonic() - self.begin, 3)
        print(json.dumps([name_of(test), outcome, seconds, detail]), file=self.file, flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, "passed", "")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped", reason)

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "failed", self._exc_info_to_string(err, test))
        if not isinstance(test, unittest.TestCase):  # setUpModule or setUpClass
            self.write(test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "failed", self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.note(test, "failed", f"{subtest.id()}\n{self._exc_info_to_string(err, test)}")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.note(test, "failed", "it was expected to fail")


def name_of(test):
    """MODULE/TEST; of setUpModule and setUpClass MODULE."""
    if not isinstance(test, unittest.TestCase):  # "setUpClass (MODULE.CLASS)"
        return test.id().partition("(")[2].partition(".")[0].rstrip(")") or test.id()
    parts = test.id().split(".")
    return f"{parts[0]}/{parts[-1]}"


def cases_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from cases_of(test)
        else:
            yield test


def find(name):
    """The tests called `name`."""
    module, _, test = name.partition("/")
    if module.partition(".")[0] not in MODULES and not test:
        module, test = "", module
    modules = [module] if module else [other for other, path in MODULES.items() if f"def {test}(" in read(path)]
    found = [case for other in modules
             for case in cases_of([unittest.defaultTestLoader.loadTestsFromName(other)])
             if not test or case.id().endswith("." + test)]
    if not found:
        print(f"run.py: no test is called {name}", file=sys.stderr)
    return found


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def has_mark(case, mark):
    method = getattr(case, getattr(case, "_testMethodName", ""), None)
    marks = (*getattr(sys.modules.get(type(case).__module__), "MARKS", ()), *getattr(type(case), "marks", ()),
             *getattr(method, "marks", ()))
    return not mark or mark in marks or not hasattr(case, "_testMethodName")


def main(arguments):
    options = dict(argument.removeprefix("--").split("=", 1) for argument in arguments if argument.startswith("--"))
    names = [argument for argument in arguments if not argument.startswith("--")]
    if not names:
        os.execv(os.path.join(FOLDER, "..", "run"), ["run", "--no-build", "mount"])
    sys.path[:0] = [FOLDER, *sorted({os.path.dirname(path) for path in PATHS})]
    warnings.simplefilter("ignore")
    import mounting  # pylint: disable=import-outside-toplevel
    # A process that copies the mount namespace of this one would keep its servers alive, and the other way round.
    mounting.enter_namespace()
    suite = unittest.TestSuite(case for name in names for case in find(name) if has_mark(case, options.get("mark")))
    runner = unittest.TextTestRunner(verbosity=2, resultclass=Result, warnings="ignore")
    if not list(suite):
        return 0 if options.get("mark") else 2
    expected = list(suite)
    make_result = runner._makeResult

    def result_with_file():
        result = make_result()
        if options.get("results"):
            result.file = open(options["results"], "w", encoding="utf-8")
        return result
    runner._makeResult = result_with_file
    result = runner.run(suite)
    # The tests of a module or class whose set-up skips all never start.
    skips = {test.id(): reason for test, reason in result.skipped if not isinstance(test, unittest.TestCase)}
    for case in expected if skips else ():
        if case.id() not in result.outcomes:
            result.outcomes[case.id()] = "skipped", next(iter(skips.values()))
            result.write(case)
    counts = [sum(outcome == one for key, (outcome, _) in result.outcomes.items() if key not in skips)
              for one in ("passed", "failed", "skipped")]
    print("{} passed, {} failed, {} skipped".format(*counts), flush=True)
    return 1 if counts[1] else 0


sys.exit(main(sys.argv[1:]))
