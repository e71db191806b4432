#!/usr/bin/env python3
"""Models by their names in the stores of other programs."""

import csv
import hashlib
import io
import json
import os
import subprocess
import tarfile
import unittest

import mounting

STORES = os.path.join(mounting.FIXTURES, "stores", "stores")
EX_USAGE, EX_NOINPUT, EX_DATAERR = 64, 66, 65
COMMIT = "0123456789abcdef0123456789abcdef01234567"
DIGEST = "ab" * 32
OTHER = "cd" * 32


class StoreTestCase(mounting.MountTestCase):
    def run_here(self, *words, **variables):
        """The result of `ggufs WORD...` where HOME is the folder of the test."""
        kept = {key: os.environ[key] for key in ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS") if key in os.environ}
        return self.run_ggufs(*words, env={**kept, "HOME": self.folder, **variables})

    def check(self, name, **variables):
        return self.run_here("--check", name, **variables)

    def complete(self, word, **variables):
        """What TAB offers for a word."""
        return [line.rstrip("\t") for line in self.run_here("--complete", "1", word, **variables).out.splitlines()]

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
        for name in ("TINY", "Library/Tiny:LATEST"):
            self.expect_model(path, "ollama:" + name)
        self.expect_refusal("it has: someone/tiny:1b, localhost:5000/a/tiny:latest, tiny:latest", "ollama:someone/tiny")
        self.expect_refusal("someone/tiny:1b", "ollama:large")
        self.expect_refusal("names no model", "ollama:")

    def test_a_store_at_another_place(self):
        path = self.put_model("elsewhere/blobs/sha256-" + DIGEST)
        self.put_image("sha256:" + DIGEST, "registry.ollama.ai/library/tiny/latest")
        os.rename(self.path(".ollama/models/manifests"), self.path("elsewhere/manifests"))
        self.expect_model(path, "ollama:tiny", OLLAMA_MODELS=self.path("elsewhere"))
        self.expect_model(path, f"ollama:{self.folder}/elsewhere:tiny")
        os.mkdir(self.path("up"))
        os.rename(self.path("elsewhere"), self.path("up/models"))
        path = path.replace("elsewhere", "up/models")
        self.expect_model(path, f"ollama:{self.folder}/up:tiny")
        self.expect_model(path, f"ollama:{self.folder}/up")  # the only one
        self.put_manifest({}, "registry.ollama.ai/library/tiny/1b")
        os.rename(self.path(".ollama/models/manifests/registry.ollama.ai/library/tiny/1b"),
                  self.path("up/models/manifests/registry.ollama.ai/library/tiny/1b"))
        self.expect_refusal("names no model", f"ollama:{self.folder}/up")
        self.expect_refusal("there is no store in", f"ollama:{self.folder}/nothing:tiny")

    def test_names_of_another_form(self):
        self.put_model("passwd")
        for name in (":", "../../../etc/passwd", "a/b/c/d/e", "x" * 1000, "a:b\n", "tiny:../../x", ".hidden"):
            with self.subTest(name=name):
                self.expect_refusal("[not-a-file]", "ollama:" + name)

    def test_what_belongs_to_a_model(self):
        layers = [{"mediaType": "application/vnd.ollama.image." + kind, "digest": "sha256:" + digit * 64}
                  for kind, digit in (("model", "a"), ("projector", "b"), ("adapter", "c"), ("draft", "d"), ("license", "e"),
                                      ("license", "f"), ("params", "1"), ("embed", "2"))]
        self.put_manifest({"layers": layers}, "registry.ollama.ai/library/tiny/latest")
        for digit in "abcdef1":
            path = self.put_model(".ollama/models/blobs", "sha256-" + digit * 64)
        for name in ("ollama:tiny", path):
            info = json.loads(self.run_here("--info", "--json", name).out)
            self.assertEqual("ollama:tiny:latest", info["store"])
            self.assertEqual({"mmproj.gguf": "b", "adapter.gguf": "c", "draft.gguf": "d", "license": "e", "license-2": "f",
                              "params.json": "1"}, {name: path[-1] for name, path in info["stored_with"].items()})
        self.assertIn("store           ollama:tiny:latest\n", self.run_here("--info", path).out)
        self.put_manifest({"layers": layers[:1]}, "registry.ollama.ai/library/a/latest")  # of the same blob
        for name, files in (("ollama:tiny", 6), ("ollama:a", 0)):
            info = json.loads(self.run_here("--info", "--json", name).out)
            self.assertEqual((name + ":latest", files), (info["store"], len(info.get("stored_with", {}))))

    def test_completion(self):
        self.blob()
        for name in ("registry.ollama.ai/library/tiny/1b", "registry.ollama.ai/library/tiny/2b", "hf.co/o/n/Q8_0"):
            self.put_image("sha256:" + DIGEST, name)
        self.assertEqual(["ollama:tiny:1b", "ollama:tiny:2b"], self.complete("ollama:ti"))
        self.assertEqual(["ollama:hf.co/o/n:Q8_0"], self.complete("ollama:h"))
        self.assertEqual(["ollama:"], self.complete("ol"))
        self.assertEqual(0, self.run_here("--complete", "1", "ollama:ti").status)  # names of files do not follow
        self.assertEqual(1, self.run_here("--complete", "1", "ollama:x").status)
        self.assertEqual([f"ollama:{self.folder}/.ollama:tiny:2b"], self.complete(f"ollama:{self.folder}/.ollama:tiny:2"))
        result = self.run_here("--complete", "2", "--cat", "ollama:tiny:1b", "tensors.t")
        self.assertNotEqual("", result.out)
        runner = subprocess.run([mounting.BINARY + "-run", "--complete", "1", "ollama:tiny:1"], stdout=subprocess.PIPE,
                                env={"HOME": self.folder}, check=False)
        self.assertEqual(b"ollama:tiny:1b\t\n", runner.stdout)

    def test_hostile_manifests(self):
        path = "registry.ollama.ai/library/bad/latest"
        manifest = self.path(".ollama/models/manifests/" + path)
        secret = self.put_model("secret.gguf")
        for digest in ("sha256:../../../secret.gguf", "../secret.gguf", "sha256:" + "g" * 64, "", secret):
            with self.subTest(digest=digest):
                self.put_image(digest, path)
                self.expect_refusal("hexadecimal", "ollama:bad")
        for text, message in ((b"", "not JSON"), (b"{", "not JSON"), (b"[" * 100000, "not JSON"),
                              (b"[]", "no model file"), (b"null", "no model file"),
                              (b'{"layers": [1, null, {"digest": 3}]}', "no model file")):
            with self.subTest(text=text[:10]):
                self.put_manifest(text, path)
                self.expect_refusal(message, "ollama:bad")
        self.put_image("sha256:" + DIGEST, path, media_type="tensor")
        self.expect_refusal("safetensors", "ollama:bad")
        os.truncate(manifest, 17 << 20)
        self.expect_refusal("is too large, over 16 MiB", "ollama:bad")
        os.unlink(manifest)
        os.mkfifo(manifest)
        self.expect_refusal("is not a regular file", "ollama:bad")
        os.unlink(manifest)
        os.symlink("latest", manifest)
        self.expect_refusal("symbolic links", "ollama:bad")

    def test_a_blob_that_is_not_a_file(self):
        self.put_image("sha256:" + DIGEST, "registry.ollama.ai/library/bad/latest")
        path = self.put(b"", ".ollama/models/blobs", "sha256-" + DIGEST)
        os.unlink(path)
        os.mkfifo(path)
        self.expect_refusal("not a regular file", "ollama:bad")

    def test_a_file_beside_the_model_that_is_not_one(self):
        """The message names that file."""
        layers = [{"mediaType": "application/vnd.ollama.image." + kind, "digest": "sha256:" + digest}
                  for kind, digest in (("model", DIGEST), ("template", OTHER))]
        self.put_manifest({"layers": layers}, "registry.ollama.ai/library/bad/latest")
        os.mkfifo(self.put_model(".ollama/models/blobs", "sha256-" + DIGEST)[:-len(DIGEST)] + OTHER)
        self.expect_refusal(f"its file {self.path('.ollama/models/blobs/sha256-' + OTHER)}: is not", "ollama:bad")

    def test_incomplete(self):
        self.put_image("sha256:" + DIGEST, "registry.ollama.ai/library/tiny/latest")
        self.expect_refusal("is missing; download the model again", "ollama:tiny")
        path = self.put_model(".ollama/models/blobs", f"sha256-{DIGEST}-partial")
        self.put(b"{}", ".ollama/models/blobs", f"sha256-{DIGEST}-partial-0")
        self.expect_refusal(f"its download has not finished: {path}; -o partial", "ollama:tiny")
        result = self.run_here("--list", "-o", "partial", "ollama:tiny")
        self.assertEqual(0, result.status, result.err)

    def test_names_with_control_bytes(self):
        self.put_image("sha256:" + DIGEST, "registry.ollama.ai/library/\x1b[31mred/latest")
        self.put_image("sha256:" + DIGEST, "registry.ollama.ai/library/good/latest")
        self.expect_refusal("it has: good:latest", "ollama:tiny")
        self.assertEqual(["ollama:good:latest"], self.complete("ollama:"))


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
        self.expect_model(deep, "hf:o/n/UD-Q2_K/n")
        self.expect_model(small, f"hf:o/n@{COMMIT}:Q4_0")
        self.expect_refusal("there are: UD-Q2_K/n.gguf, n-Q4_0.gguf, n-Q8_0.gguf", "hf:o/n:Q5_K_M")
        self.expect_refusal("hf download o/m", "hf:o/m")
        self.expect_refusal("no such revision", "hf:o/n@refs/pr/9")
        self.assertEqual(["hf:o/n"], self.complete("hf:"))
        self.assertEqual(["hf:o/n/n-Q4_0", "hf:o/n/n-Q8_0"], self.complete("hf:o/n/n"))
        self.assertEqual(["hf:o/n:Q4_0", "hf:o/n:Q8_0"], self.complete("hf:o/n:"))
        self.assertEqual(["hf:o/n:Q8_0"], self.complete("hf:o/n:Q8"))

    def test_names_of_another_form(self):
        for name in ("o/../n", "o/n/../../x", "o/n@../x", "o/n:", "a\x1b/b", "x" * 400):
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
        projector = self.put_snapshot("models--o--n", "mmproj.gguf", b"")
        os.unlink(projector)
        os.unlink(link)
        os.symlink("../../blobs/" + DIGEST, link)
        os.symlink("/etc/passwd", projector)
        self.expect_refusal("out of the cache", "hf:o/n")
        os.unlink(projector)
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
        self.expect_refusal("there is no store; name its folder, as in oci:DIR:REFERENCE", "oci:")
        for name in ("ollama:", f"oci:{self.folder}/nowhere", f"docker:{self.folder}/nowhere:"):
            self.expect_refusal("there is no store in ", name)

    def test_links_of_shards(self):
        first = self.put_snapshot("models--o--n", "n-00001-of-00002.gguf")
        os.symlink(self.put_model("secret.gguf"), first.replace("00001", "00002", 1))
        self.expect_refusal("out of the cache", "hf:o/n")

    def test_a_download_that_goes_on(self):
        base = ".cache/huggingface/hub/models--o--n"
        self.put(COMMIT.encode(), base, "refs/main")
        path = self.put_model(base, "blobs", DIGEST + ".12345678.incomplete")
        self.expect_refusal(f"has not finished: {path}", "hf:o/n")
        self.assertEqual(0, self.run_here("--list", "-o", "partial", "hf:o/n").status)

    def test_a_ref_that_is_no_commit(self):
        self.put_snapshot("models--o--n", "n.gguf")
        self.put(b"../../../../..", ".cache/huggingface/hub/models--o--n/refs/main")
        self.expect_refusal("no such revision", "hf:o/n")

    def test_a_checkpoint(self):
        self.put_snapshot("models--o--n", "model.safetensors", b"x")
        self.expect_refusal("checkpoint in safetensors, not GGUF", "hf:o/n")

    def test_the_projector_is_the_nearest(self):
        self.put_snapshot("models--o--n", "Q8/n-Q8_0.gguf")
        self.put_snapshot("models--o--n", "mmproj-F16.gguf")
        self.put_snapshot("models--o--n", "mmproj-Q8_0.gguf")
        self.put_snapshot("models--o--n", "other/mmproj-Q8_0.gguf")
        model = os.path.join(self.folder, f".cache/huggingface/hub/models--o--n/snapshots/{COMMIT}/Q8/n-Q8_0.gguf")
        blob = self.path(".cache/huggingface/hub/models--o--n/blobs/" + DIGEST)
        os.mkdir(os.path.dirname(blob))
        os.rename(model, blob)
        os.symlink("../../../blobs/" + DIGEST, model)
        info = json.loads(self.run_here("--info", "--json", blob).out)
        self.assertEqual("hf:o/n/Q8/n-Q8_0", info["store"])
        self.assertEqual("mmproj-Q8_0.gguf", os.path.basename(info["stored_with"]["mmproj.gguf"]))
        self.assertNotIn("other", info["stored_with"]["mmproj.gguf"])

    def test_lm_studio(self):
        path = self.put_model(".lmstudio/models/o/n/n-Q8_0.gguf")
        self.put_model(".lmstudio/models/o/n/mmproj-n.gguf")
        self.expect_model(path, "lmstudio:o/n")
        self.put_model(".lmstudio/models/o/n/n-Q4_0.gguf")
        self.expect_refusal("several models", "lmstudio:o/n")
        self.expect_model(path, "lmstudio:o/n:Q8_0")
        self.expect_model(path, "lmstudio:o/n/n-Q8_0.gguf")
        self.expect_refusal("no such model", "lmstudio:o/m")
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


class TestImages(StoreTestCase):
    """Image layouts, and the store of Docker Model Runner."""

    def setUp(self):
        super().setUp()
        with open(mounting.sample(), "rb") as file:
            self.model = file.read()

    def put_blob(self, data, *words):
        digest = hashlib.sha256(data).hexdigest()
        self.put(data, *words, digest)
        return "sha256:" + digest

    def put_layout(self, *layers, name="tag", **row):
        """Put an image with layers (media type, data or digest, name of the file)."""
        layers = [{"mediaType": kind, "annotations": {"org.cncf.model.filepath": file},
                   "digest": data if isinstance(data, str) else self.put_blob(data, "image/blobs/sha256")}
                  for kind, data, file in layers]
        digest = self.put_blob(json.dumps({"layers": layers}).encode(), "image/blobs/sha256")
        row = {"digest": digest, "mediaType": "application/vnd.oci.image.manifest.v1+json",
               "annotations": {"org.opencontainers.image.ref.name": name}, **row}
        self.put(json.dumps({"manifests": [row]}).encode(), "image/index.json")
        return f"oci:{self.folder}/image"

    def pack(self, *members, form=tarfile.PAX_FORMAT):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=form) as archive:
            for name, data in members:
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        return out.getvalue()

    def expect_bytes(self, data, *words):
        result = subprocess.run([mounting.BINARY, "--cat", *words, "model.gguf"], stdout=subprocess.PIPE, check=True)
        self.assertEqual(data, result.stdout)

    def test_files_and_archives(self):
        weight = "application/vnd.cncf.model.weight.v1."
        for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT):
            name = "x" * 90 if form == tarfile.USTAR_FORMAT else "x" * 300
            archive = self.pack(("README", b"text"), (name + ".gguf", self.model), form=form)
            self.expect_bytes(self.model, self.put_layout((weight + "tar", archive, "m.gguf")))
        self.expect_bytes(self.model, self.put_layout((weight + "raw", self.model, "m.gguf")))
        self.expect_bytes(self.model, self.put_layout(("application/vnd.docker.ai.gguf.v3", self.model, "")) + ":tag")
        for kind in (weight + "tar+gzip", weight + "tar+zstd", "application/vnd.oci.image.layer.v1.tar+gzip"):
            layout = self.put_layout((kind, b"x", ""))
            self.expect_refusal("unpack it: tar -xf " + layout[4:].split(":")[0] + "/blobs/sha256/", layout)
        ordinary = ("application/vnd.oci.image.layer.v1.tar", self.pack(("m.gguf", self.model)), "")
        self.expect_bytes(self.model, self.put_layout(ordinary))
        self.expect_refusal("safetensors", self.put_layout((weight + "raw", b"x", "m.safetensors")))
        self.expect_refusal("several models, a.gguf and b.gguf",
                            self.put_layout((weight + "raw", b"x", "b.gguf"), (weight + "raw", b"y", "a.gguf")))
        two = self.pack(("a.gguf", self.model), ("b.gguf", self.model))
        self.expect_refusal("holds 2 models in a tar archive", self.put_layout((weight + "tar", two, "")))
        self.expect_refusal("tar archive without a model", self.put_layout((weight + "tar", self.pack(("a", b"b")), "")))

    def test_an_archive_by_its_path(self):
        archive = self.pack(("m.gguf", self.model))
        self.expect_bytes(self.model, self.put(archive, "m.tar"))
        for cut in (600, len(archive) // 2):
            result = self.run_ggufs("--check", self.put(archive[:cut], "cut.tar"))
            self.assertEqual(EX_DATAERR, result.status)

    def test_hostile_layouts(self):
        kind = "application/vnd.docker.ai.gguf.v3"
        for digest in ("sha256:../../../x", "md5:" + "a" * 64, "sha512:" + "a" * 64, "sha256:" + "A" * 63 + "/"):
            self.expect_refusal("hexadecimal", self.put_layout((kind, digest, "")))
            self.expect_refusal("hexadecimal", self.put_layout((kind, self.model, ""), digest=digest))
        self.expect_refusal("is missing", self.put_layout((kind, "sha512:" + "a" * 128, "")))
        spec = self.put_layout((kind, self.model, ""), name="../..\x1b[31m")
        for word in (spec, spec + ":"):
            self.assertRegex(self.complete(word)[0], ":sha256:[0-9a-f]{64}$")
        index = self.put_blob(b"{}", "image/blobs/sha256")  # an index that holds itself
        row = {"digest": index, "mediaType": "application/vnd.oci.image.index.v1+json"}
        for path in ("image/index.json", "image/blobs/sha256/" + index[7:]):
            self.put(json.dumps({"manifests": [row, row]}).encode(), path)
        self.expect_refusal("[not-a-file]", spec + ":x")
        for path in ("image/index.json", "image/blobs/sha256/" + index[7:]):
            self.put(json.dumps({"manifests": [row] * 1000}).encode(), path)
        self.assertIn("too many models", self.run_ggufs("--info", spec).err)
        os.truncate(self.path("image/index.json"), 100 << 20)
        self.expect_refusal("[not-a-file]", spec)

    def test_docker(self):
        layer = {"mediaType": "application/vnd.docker.ai.gguf.v3",
                 "digest": self.put_blob(self.model, ".docker/models/blobs/sha256")}
        digest = self.put_blob(json.dumps({"layers": [layer]}).encode(), ".docker/models/manifests/sha256")
        rows = [{"id": digest, "tags": ["docker.io/ai/tiny:latest", "hf.co/o/n:q8_0"]}, {"id": "../x", "tags": ["bad"]}, 7]
        self.put(json.dumps({"models": rows}).encode(), ".docker/models/models.json")
        path = self.path(".docker/models/blobs/sha256/" + layer["digest"][7:])
        for name in ("ai/tiny", "tiny", "docker.io/ai/tiny:latest", "hf.co/o/n:Q8_0"):
            self.expect_model(path, "docker:" + name)
        self.expect_refusal("hexadecimal", "docker:bad")
        os.rename(path, path + ".incomplete")
        self.expect_refusal("has not finished", "docker:tiny")

    def test_ramalama(self):
        base = ".local/share/ramalama/store/huggingface/o/n"
        path = self.put_model(base, "snapshots/sha256-1/n.gguf")
        good = {"hash": "sha256:1", "files": [{"name": "n.gguf", "type": "gguf"}, {"name": "m", "type": "mmproj"}]}
        self.put(json.dumps(good).encode(), base, "refs/latest.json")
        self.put(b"sha256:0\nold---model\n", base, "refs/latest")
        self.put(b"sha256:1\nn.gguf---model\n", base, "refs/old")
        self.put_model(base, "snapshots/sha256-1/m")
        self.expect_model(path, "ramalama:huggingface/o/n")
        self.expect_model(path, "ramalama:huggingface/o/n:old")
        self.assertEqual(["ramalama:huggingface/o/n:latest", "ramalama:huggingface/o/n:old"], self.complete("ramalama:"))
        for ref in (b'{"hash": "../..", "files": [{"name": "n.gguf", "type": "gguf"}]}',
                    b'{"hash": "sha256:1", "files": [{"name": "../../../n.gguf", "type": "gguf"}]}',
                    b"../..\nn.gguf---model", b"sha256:1\n../../m---model"):
            self.put(ref, base, "refs/bad")
            self.expect_refusal("another form", "ramalama:huggingface/o/n:bad")
        for ref, message in ((b"{", "not JSON"), (b"", "names no model file")):
            self.put(ref, base, "refs/bad")
            self.expect_refusal(message, "ramalama:huggingface/o/n:bad")


@unittest.skipUnless(os.path.isdir(STORES), "no fixtures")
class TestFixtures(StoreTestCase):
    # The names that a whole store has; a mount of it has a folder for each.
    LISTS = {"ollama:": ["broken:latest", "hf.co/tiny/nano-GGUF:Q8_0", "llama3.2:1b", "llama3.2:latest-q4",
                         "nano-lora:latest", "nano-mlx:latest", "someone/old-mistral:latest", "vision:latest"],
             "hf:": ["nano2", "tiny/nano-GGUF", "tiny/nano-safetensors", "tiny/partial-GGUF", "tiny/vision-GGUF"],
             "lmstudio:": ["lmstudio-community/vision-GGUF", "mlx-community/nano-fp16", "tiny/nano-GGUF",
                           "tiny/nano-split-GGUF"]}

    def expect_row(self, row, spec, path, **variables):
        if row["role"] == "list":
            names = [name.removeprefix(spec) for name in self.complete(spec, **variables)]
            self.assertEqual(self.LISTS[spec], sorted(names))
        elif row["role"] in ("checkpoint", "tensors"):
            self.expect_refusal("safetensors", spec, **variables)
            self.expect_refusal(row["path"] if row["role"] == "tensors" else "not GGUF", spec, **variables)
        elif row["role"] in ("projector", "adapter"):
            info = json.loads(self.run_here("--info", "--json", spec, **variables).out)
            name = "mmproj.gguf" if row["role"] == "projector" else "adapter.gguf"
            self.assertEqual(os.path.realpath(path), os.path.realpath(info["stored_with"][name]))
        elif row["expect"] == "error":
            self.expect_refusal("[not-a-file]", spec, **variables)
        elif row["path"].startswith("(tar"):
            result = self.run_here("--cat", spec, "SHA256SUMS", **variables)
            self.assertIn(row["sha256"] + "  model.gguf", result.out)
        elif row["path"]:
            self.expect_model(path, spec, **variables)
        else:
            self.assertEqual(0, self.check(spec, **variables).status)

    def test_expected(self):
        with open(os.path.join(STORES, "expected.tsv"), encoding="utf-8") as rows:
            rows = list(csv.DictReader(rows, delimiter="\t", quoting=csv.QUOTE_NONE))
        for row in rows:
            if row["tree"] == "llama-server-models-dir":  # a folder of models, not a store
                continue
            tree = self.path(row["tree"])
            if not os.path.isdir(tree):
                with tarfile.open(os.path.join(STORES, row["tree"] + ".tar.gz")) as archive:
                    archive.extractall(self.folder)
            spec = row["spec"].replace("docker store: ", "docker:").replace("ramalama: ", "ramalama:")
            variables = {"HOME": tree, "XDG_DATA_HOME": tree, "MODELS_PATH": os.path.join(tree, "models"),
                         "OLLAMA_MODELS": os.path.join(tree, "models")}
            if row["tree"] == "hf-hub":
                variables["HF_HOME"] = os.path.join(tree, "huggingface")
            with self.subTest(tree=row["tree"], spec=spec):
                self.expect_row(row, spec.replace("oci:", f"oci:{tree}/"), os.path.join(tree, row["path"]), **variables)


if __name__ == "__main__":
    unittest.main()
