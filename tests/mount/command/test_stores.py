#!/usr/bin/env python3
"""Models by their names in the stores of Ollama, Hugging Face, llama.cpp and LM Studio."""

import csv
import json
import os
import tarfile
import unittest

import mounting

STORES = os.path.join(mounting.FIXTURES, "stores", "stores")
EX_USAGE, EX_NOINPUT, EX_DATAERR = 64, 66, 65
COMMIT = "0123456789abcdef0123456789abcdef01234567"
DIGEST = "ab" * 32
# What the stores hold beside the text models in GGUF files.
OTHER_ROLES = ("projector", "adapter", "checkpoint", "tensors", "list")


class StoreTestCase(mounting.MountTestCase):
    def check(self, name, **variables):
        """The result of `ggufs --check NAME` where HOME is the folder of the test."""
        kept = {key: os.environ[key] for key in ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS") if key in os.environ}
        return self.run_ggufs("--check", name, env={**kept, "HOME": self.folder, **variables})

    def expect_model(self, path, name, **variables):
        result = self.check(name, **variables)
        self.assertEqual(0, result.status, result.out + result.err)
        self.assertIn(os.path.realpath(path), os.path.realpath(result.out.split(":")[0]))

    def expect_refusal(self, text, name, **variables):
        result = self.check(name, **variables)
        self.assertNotEqual(0, result.status, result.out)
        self.assertIn(text, result.out + result.err)
        self.assertTrue((result.out + result.err).replace("\n", "").isprintable())

    def put(self, data, *words):
        path = self.path(os.path.join(*words))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def put_model(self, *words):
        with open(mounting.sample(), "rb") as file:
            return self.put(file.read(), *words)


class TestOllama(StoreTestCase):
    def put_manifest(self, manifest, *words):
        text = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
        return self.put(text, ".ollama/models/manifests", *words)

    def put_image(self, digest, *words, media_type="model"):
        layer = {"mediaType": "application/vnd.ollama.image." + media_type, "digest": digest, "size": 1}
        return self.put_manifest({"schemaVersion": 2, "layers": [layer]}, *words)

    def blob(self):
        return self.put_model(".ollama/models/blobs", "sha256-" + DIGEST)

    def test_names(self):
        path = self.blob()
        self.put_image("sha256:" + DIGEST, "registry.ollama.ai/library/tiny/latest")
        self.put_image("sha256-" + DIGEST, "registry.ollama.ai/someone/tiny/1b")
        self.put_image("sha256:" + DIGEST, "localhost:5000/a/tiny/latest")
        for name in ("tiny", "tiny:latest", "library/tiny", "registry.ollama.ai/library/tiny:latest",
                     "someone/tiny:1b", "localhost:5000/a/tiny", "http://localhost:5000/a/tiny"):
            with self.subTest(name=name):
                self.expect_model(path, "ollama:" + name)
        self.expect_refusal("its tags: 1b", "ollama:someone/tiny")
        self.expect_refusal("it has: tiny", "ollama:large")

    def test_a_store_at_another_place(self):
        path = self.put_model("elsewhere/blobs/sha256-" + DIGEST)
        self.put_image("sha256:" + DIGEST, "registry.ollama.ai/library/tiny/latest")
        os.rename(self.path(".ollama/models/manifests"), self.path("elsewhere/manifests"))
        self.expect_model(path, "ollama:tiny", OLLAMA_MODELS=self.path("elsewhere"))

    def test_names_of_another_form(self):
        for name in ("", ":", "../../../etc/passwd", "a/b/c/d/e", "x" * 100, "a:b\n", "tiny:../../x", ".hidden"):
            with self.subTest(name=name):
                self.expect_refusal("is not a name of the form", "ollama:" + name)

    def test_hostile_manifests(self):
        path = "registry.ollama.ai/library/bad/latest"
        manifest = self.path(".ollama/models/manifests/" + path)
        secret = self.put_model("secret.gguf")
        for digest in ("sha256:../../../secret.gguf", "../secret.gguf", "sha256:" + "g" * 64, "", secret):
            with self.subTest(digest=digest):
                self.put_image(digest, path)
                self.expect_refusal("hexadecimal", "ollama:bad")
        for text, message in ((b"", "not JSON"), (b"{", "not JSON"), (b"[" * 100000, "not JSON"),
                              (b"[]", "no model file"), (b"null", "no model file")):
            with self.subTest(text=text[:10]):
                self.put_manifest(text, path)
                self.expect_refusal(message, "ollama:bad")
        self.put_image("sha256:" + DIGEST, path, media_type="tensor")
        self.expect_refusal("safetensors", "ollama:bad")
        os.truncate(manifest, 17 << 20)
        self.expect_refusal("File too large", "ollama:bad")
        os.unlink(manifest)
        os.mkfifo(manifest)
        self.expect_refusal("is not a regular file", "ollama:bad")

    def test_incomplete(self):
        self.put_image("sha256:" + DIGEST, "registry.ollama.ai/library/tiny/latest")
        self.expect_refusal("is missing; run ollama pull", "ollama:tiny")
        self.put(b"", ".ollama/models/blobs", f"sha256-{DIGEST}-partial")
        self.expect_refusal("not been downloaded completely", "ollama:tiny")

    def test_names_with_control_bytes(self):
        self.put_image("sha256:" + DIGEST, "registry.ollama.ai/library/\x1b[31mred/latest")
        self.expect_refusal("?[31mred", "ollama:tiny")


class TestFiles(StoreTestCase):
    def put_snapshot(self, repository, name, data=None):
        base = f".cache/huggingface/hub/{repository}"
        if data is not None:
            path = self.put(data, base, "snapshots", COMMIT, name)
        else:
            path = self.put_model(base, "snapshots", COMMIT, name)
        self.put(COMMIT.encode(), base, "refs/main")
        return path

    def test_tags(self):
        small = self.put_snapshot("models--o--n", "n-Q4_0.gguf")
        large = self.put_snapshot("models--o--n", "n-Q8_0.gguf")
        deep = self.put_snapshot("models--o--n", "UD-Q2_K/n.gguf")
        self.put_snapshot("models--o--n", "mmproj-Q8_0.gguf")
        self.expect_model(large, "hf:o/n")
        self.expect_model(large, "llamacpp:o/n")
        self.expect_model(small, "hf:o/n:q4_0")
        self.expect_model(deep, "hf:o/n/UD-Q2_K/n.gguf")
        self.expect_model(small, f"hf:o/n@{COMMIT}:Q4_0")
        self.expect_refusal("there are: UD-Q2_K/n.gguf, n-Q4_0.gguf, n-Q8_0.gguf", "hf:o/n:Q5_K_M")
        self.expect_refusal("hf download o/m", "hf:o/m")
        self.expect_refusal("is not in the cache", "hf:o/n@refs/pr/9")

    def test_names_of_another_form(self):
        for name in ("", "/", "../x", "o/../n", "o/n/../../x", "o/n@../x", "o/n:", "a\x1b/b", "x" * 400):
            with self.subTest(name=name):
                self.expect_refusal("is not a name of the form", "hf:" + name)

    def test_links(self):
        target = self.put_model(".cache/huggingface/hub/models--o--n/blobs/" + DIGEST)
        link = self.put_snapshot("models--o--n", "n-Q8_0.gguf", b"")
        os.unlink(link)
        os.symlink("../../blobs/" + DIGEST, link)
        self.expect_model(target, "hf:o/n")
        os.unlink(link)
        os.symlink(self.put_model("secret.gguf"), link)
        self.expect_refusal("out of the cache", "hf:o/n")
        os.unlink(link)
        os.symlink("nothing", link)
        self.expect_refusal("is missing", "hf:o/n")

    def test_a_file_by_its_name(self):
        for name in ("n-Q4_K_M.gguf", "n-Q8_0.gguf", "mmproj-n.gguf", "n-F16-00002-of-00002.gguf"):
            path = self.put_snapshot("models--o--n", name)
            with self.subTest(name=name):
                result = self.check("hf:o/n/" + name)
                self.assertIn(path, result.out + result.err)

    def test_a_manifest_of_the_old_cache_is_for_a_tag(self):
        named = self.put_snapshot("models--o--n", "n-Q8_0.gguf")
        old = self.put_model(".cache/llama.cpp/o_n_n-Q4_0.gguf")
        self.put(b'{"ggufFile": {"rfilename": "n-Q4_0.gguf"}}', ".cache/llama.cpp/manifest=o=n=latest.json")
        self.expect_model(old, "hf:o/n")
        self.expect_model(named, "hf:o/n/n-Q8_0.gguf")
        self.expect_model(named, "hf:o/n@" + COMMIT)
        self.expect_model(named, "hf:o/n@main")

    def test_a_folder_named_as_a_file(self):
        path = self.put_snapshot("models--o--n", "n-Q4_K_M.gguf/n.gguf")
        self.expect_model(path, "hf:o/n")

    def test_no_home(self):
        for name in ("hf:o/n", "llamacpp:o/n"):
            self.expect_refusal("set HOME", name, HOME="")

    def test_links_of_shards(self):
        first = self.put_snapshot("models--o--n", "n-00001-of-00002.gguf")
        os.symlink(self.put_model("secret.gguf"), first.replace("00001", "00002", 1))
        self.expect_refusal("out of the cache", "hf:o/n")

    def test_a_download_that_goes_on(self):
        base = ".cache/huggingface/hub/models--o--n"
        self.put(COMMIT.encode(), base, "refs/main")
        self.put(b"", base, "blobs", DIGEST + ".12345678.incomplete")
        self.expect_refusal("has not finished", "hf:o/n")

    def test_a_ref_that_is_no_commit(self):
        self.put_snapshot("models--o--n", "n.gguf")
        self.put(b"../../../../..", ".cache/huggingface/hub/models--o--n/refs/main")
        self.expect_refusal("is not in the cache", "hf:o/n")

    def test_lm_studio(self):
        path = self.put_model(".lmstudio/models/o/n/n-Q8_0.gguf")
        self.put_model(".lmstudio/models/o/n/mmproj-n.gguf")
        self.expect_model(path, "lmstudio:o/n")
        self.put_model(".lmstudio/models/o/n/n-Q4_0.gguf")
        self.expect_refusal("several models", "lmstudio:o/n")
        self.expect_model(path, "lmstudio:o/n:Q8_0")
        self.expect_model(path, "lmstudio:o/n/n-Q8_0.gguf")
        self.expect_refusal("no such repository", "lmstudio:o/m")
        self.expect_refusal("is not a name of the form", "lmstudio:o")

    def test_lm_studio_elsewhere(self):
        moved = self.put_model("moved/models/o/n/n.gguf")
        self.put(self.path("moved").encode() + b"\n", ".lmstudio-home-pointer")
        self.expect_model(moved, "lmstudio:o/n")
        other = self.put_model("downloads/o/n/n.gguf")
        self.put(json.dumps({"downloadsFolder": self.path("downloads")}).encode(), "moved/settings.json")
        self.expect_model(other, "lmstudio:o/n")
        self.put(b"{", "moved/settings.json")
        self.expect_model(moved, "lmstudio:o/n")

    def test_the_runner_and_a_mount_take_names(self):
        self.put_snapshot("models--o--n", "n.gguf")
        environment = {**os.environ, "HOME": self.folder, "XDG_CACHE_HOME": "", "HF_HOME": ""}
        result = self.run_ggufs("--cat", "tensors.tsv", "hf:o/n", env=environment)
        self.assertEqual(0, result.status, result.err)
        self.assertIn("token_embd.weight", result.out)


@unittest.skipUnless(os.path.isdir(STORES), "no fixtures")
class TestFixtures(StoreTestCase):
    def test_expected(self):
        with open(os.path.join(STORES, "expected.tsv"), encoding="utf-8") as rows:
            rows = [row for row in csv.DictReader(rows, delimiter="\t", quoting=csv.QUOTE_NONE)
                    if row["spec"].partition(":")[0] in ("ollama", "hf", "lmstudio") and
                    not row["spec"].endswith(":") and row["role"] not in OTHER_ROLES]
        for row in rows:
            tree = self.path(row["tree"])
            if not os.path.isdir(tree):
                with tarfile.open(os.path.join(STORES, row["tree"] + ".tar.gz")) as archive:
                    archive.extractall(self.folder)
            variables = {"HOME": tree}
            if row["tree"] == "ollama-basic":
                variables["OLLAMA_MODELS"] = os.path.join(tree, "models")
            if row["tree"] == "hf-hub":
                variables["HF_HOME"] = os.path.join(tree, "huggingface")
            with self.subTest(tree=row["tree"], spec=row["spec"]):
                if row["expect"] == "ok":
                    self.expect_model(os.path.join(tree, row["path"]), row["spec"], **variables)
                else:
                    self.expect_refusal("[not-a-file]", row["spec"], **variables)


if __name__ == "__main__":
    unittest.main()
