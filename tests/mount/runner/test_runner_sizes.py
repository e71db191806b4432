#!/usr/bin/env python3
"""The memory that ggufs states for a model, and what ggufs-run allocates and reads."""

import json
import os

import mounting
import runner_case

setUpModule = mounting.require_fuse

N_TOKENS = 200
FIXTURES = {os.path.basename(path)[:-len(".gguf")]: path for path in mounting.fixtures("archs")}


class TestSizes(runner_case.RunnerTestCase):
    def setUp(self):
        super().setUp()
        if not FIXTURES:
            self.skipTest("no fixtures")

    def info(self, model, *options):
        out = self.run_ggufs(*mounting.MOUNT_OPTIONS, "--info", "--json", *options, FIXTURES[model]).out
        return json.loads(out)

    def test_the_runner_allocates_them(self):
        """Keys, values and states are equal, and the weights of a token within 2 %."""
        for i, model in enumerate(FIXTURES):
            cache_type = ["f32", "f16", "q8_0"][i % 3]
            with self.subTest(model=model, type=cache_type):
                stated = self.info(model, "-c", str(N_TOKENS), "--cache-type", cache_type)
                out, _ = self.run_runner("--bench", f"{N_TOKENS - 4},4", "--json", "--cache-type", cache_type,
                                         FIXTURES[model])
                ran = json.loads(out)
                self.assertEqual(stated["cache_bytes"], ran["memory"]["cache_bytes"])
                self.assertEqual(stated["state_bytes"], ran["memory"]["state_bytes"])
                self.assertAlmostEqual(1, stated["token_bytes"] / ran["token_bytes"], delta=0.02)
                self.assertGreater(stated["cache_bytes"] + stated["state_bytes"], 0)

    def test_windows(self):
        """Five of the six layers of Gemma 3 see a window of 16 tokens."""
        row_bytes = 2 * 2 * 32 * 2  # of two heads of keys and of values in F16
        stated = self.info("gemma3", "-c", "2048")
        self.assertEqual((5 * 768 + 2048) * row_bytes, stated["cache_bytes"])
        self.assertEqual((5 * 16 + 2048) * row_bytes, stated["token_cache_bytes"])
        self.assertEqual((2048, "F16"), (stated["n_context"], stated["cache_type"]))
        out, _ = self.run_runner("--bench", "2040,8", "--json", "-c", "2048", FIXTURES["gemma3"])
        self.assertEqual(stated["cache_bytes"], json.loads(out)["memory"]["cache_bytes"])
        stated = self.info("gemma3", "-c", "2048", "--cache-type", "q4_0")
        self.assertEqual((5 * 768 + 2048) * row_bytes // 64 * 18, stated["cache_bytes"])

    def test_narrow_heads_keep_f16(self):
        for model, words in (("deepseek2-lite", "in Q8_0 and F16 "), ("gemma3", "in Q8_0 ")):
            out = self.run_ggufs(*mounting.MOUNT_OPTIONS, "--info", "--cache-type", "q8_0", FIXTURES[model]).out
            self.assertRegex(out, f"keys and values {words}[0-9]")

    def test_states_do_not_grow(self):
        few, many = (self.info("mamba", "-c", number) for number in ("1", "1000000"))
        self.assertEqual(0, many["cache_bytes"])
        self.assertEqual(few["state_bytes"], many["token_cache_bytes"])

    def test_parts_of_a_model(self):
        stated = self.info("mixtral", "--layers")
        layers = stated["layers"][:-1]
        roles = [name for name in stated if name in ("attention_bytes", "feed_forward_bytes", "expert_bytes",
                                                     "embedding_bytes", "output_bytes", "other_bytes")]
        weights = sum(share["n_bytes"] for share in stated["types"])
        self.assertEqual(6, len(roles))
        self.assertEqual(weights, sum(stated[name] for name in roles))
        self.assertEqual(weights + stated["cache_bytes"], stated["memory_bytes"])
        self.assertEqual(stated["expert_bytes"], sum(layer["expert_bytes"] for layer in layers))
        # The layers and the output can be on another device, the embeddings are not.
        self.assertEqual(stated["memory_bytes"] - stated["embedding_bytes"], layers[0]["rest_bytes"])
        self.assertEqual(layers[-1]["n_bytes"] + layers[-1]["cache_bytes"] + stated["output_bytes"],
                         layers[-1]["rest_bytes"])
        n_used, n_experts = stated["expert_used_count"], stated["expert_count"]
        row_bytes = 2 * stated["embedding_length"]
        self.assertEqual(weights - stated["embedding_bytes"] + row_bytes -
                         stated["expert_bytes"] * (n_experts - n_used) // n_experts, stated["token_bytes"])
