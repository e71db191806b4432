#!/usr/bin/env python3
"""ggufs-run with drafts by prompt lookup: the same text as without, in fewer passes.

When a draft is made depends on measured times. The text does not, and that the first one is made
does not either.
"""

import os

import mounting
import runner_case

setUpModule = mounting.require_fuse

REPEATED = "the file is read, the file is read, the file is"
LINE = "Lily and Tom went to the park. They saw a big dog. "
RECURRENT = {"mamba.gguf", "mamba2.gguf", "falcon-mamba.gguf"}
WITHOUT_VOCABULARY = {"deepseek-moe.gguf"}


class DraftsTestCase(runner_case.RunnerTestCase):
    def describe_both(self, *options, prompt=REPEATED, model=None):
        """Run without and with drafts, compare, and return the result with drafts."""
        plain, drafted = (self.describe("--draft", limit, *options, prompt=prompt, model=model)
                          for limit in ("0", "15"))
        self.assertEqual({"tokens": 0, "accepted": 0}, plain["timings"]["drafts"])
        for name in ("ids", "text", "stop"):
            self.assertEqual(plain[name], drafted[name])
        drafts = drafted["timings"]["drafts"]
        self.assertLessEqual(drafts["accepted"], drafts["tokens"])
        return drafted


class TestDrafts(DraftsTestCase):
    """On the sample."""

    def test_greedy(self):
        for n in range(1, 12):
            self.describe_both("-n", str(n), "--ignore-eos")
        drafted = self.describe_both("-n", "100", "--ignore-eos")
        self.assertGreater(drafted["timings"]["drafts"]["tokens"], 0)

    def test_sampling(self):
        for seed in range(4):
            self.describe_both("--temp", "0.7", "-s", str(seed), "-n", "60", "--ignore-eos")
            self.describe_both("--temp", "1.5", "--top-k", "5", "-s", str(seed), "-n", "60")
        self.describe_both("--repeat-penalty", "1.3", "--repeat-last-n", "8", "-n", "60",
                           "--ignore-eos")

    def test_stop_texts(self):
        whole = self.describe("--draft", "0", "-n", "60", "--ignore-eos", prompt=REPEATED)["text"]
        for at in range(0, len(whole) - 3, 7):
            stop = whole[at:at + 3]
            if "\0" not in stop:
                drafted = self.describe_both("-n", "60", "--ignore-eos", "-r", stop)
                self.assertEqual("stop", drafted["stop"])

    def test_context_limit(self):
        for size in range(60, 70):
            drafted = self.describe_both("-n", "-1", "-c", str(size), "--ignore-eos")
            self.assertEqual("context", drafted["stop"])
            self.assertEqual(size + 1, len(drafted["prompt_ids"]) + len(drafted["ids"]))

    def test_small_batches(self):
        for size in ("1", "2", "5"):
            self.describe_both("-n", "30", "-b", size, "--ignore-eos")
        drafted = self.describe("-n", "30", "-b", "1", "--ignore-eos", prompt=REPEATED)
        self.assertEqual(0, drafted["timings"]["drafts"]["tokens"])

    def test_chat(self):
        given = b"the file is read\n" * 6
        outs = [self.run_runner("-i", "--temp", "0", "-n", "9", "--draft", limit, self.model,
                                given=given)[0] for limit in ("0", "15")]
        self.assertEqual(*outs)

    def test_report(self):
        _, err = self.run_runner("--temp", "0", "-n", "100", "--ignore-eos", self.model, REPEATED)
        self.assertRegex(err, r"\nggufs-run: drafts +\d+ tokens, +\d+ accepted\n")
        _, err = self.run_runner("--draft", "0", "-n", "9", self.model, REPEATED)
        self.assertNotIn("drafts", err)

    def test_limits(self):
        for wrong in ("-1", "64", "x"):
            err = self.refused(runner_case.EX_USAGE, "--draft", wrong, self.model, "a")
            self.assertIn("a whole number from 0 to 63", err)
        err = self.refused(runner_case.EX_USAGE, "--model-draft", "m", self.model, "a")
        self.assertIn("--draft N", err)


class TestDraftsOnFixtures(DraftsTestCase):
    def test_a_story(self):
        model = mounting.fixture("gguf/stories260K.gguf")
        prompt = LINE * 3
        drafted = self.describe_both("-n", "120", prompt=prompt, model=model)
        self.assertGreater(drafted["timings"]["drafts"]["tokens"], 0)
        for seed in range(3):
            self.describe_both("--temp", "0.9", "-s", str(seed), "-n", "120", prompt=prompt,
                               model=model)

    def test_architectures(self):
        """All kinds of layers; windows are shorter than the text."""
        found = [model for model in mounting.fixtures("archs", "quants")
                 if os.path.basename(model) not in WITHOUT_VOCABULARY]
        if not found:
            mounting.skip_loudly("no models in the fixtures' archs and quants")
        if mounting.is_sanitized():
            found = found[::6]  # all of them take minutes, and the code is the same
        n_drafted = 0
        for model in found:
            name = os.path.basename(model)
            with self.subTest(model=name):
                drafted = self.describe_both("-n", "40", "--ignore-eos", prompt="abc" * 16,
                                             model=model)
                n = drafted["timings"]["drafts"]["tokens"]
                n_drafted += n > 0
                if name in RECURRENT:
                    self.assertEqual(0, n, "no drafts")
        self.assertGreater(n_drafted, len(found) / 2)

    def test_recurrent_models_say_so(self):
        model = mounting.fixture("archs/mamba2.gguf")
        _, err = self.run_runner("-n", "2", "--draft", "4", model, "a", model=model)
        self.assertIn("--draft 4: no drafts, because recurrent layers", err)
        for options in ((), ("--draft", "0")):
            _, err = self.run_runner("-n", "2", *options, model, "a", model=model)
            self.assertNotIn("--draft", err)
