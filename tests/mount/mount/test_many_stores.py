#!/usr/bin/env python3
"""Whole stores of other programs in one mount, and the folder of links for llama-server."""

import configparser
import hashlib
import json
import os
import tarfile
import unittest

import mounting
from gguf_file import F32, STRING, GgufFile

STORES = os.path.join(mounting.FIXTURES, "stores", "stores")
OLLAMA = "application/vnd.ollama.image."


def model(name):
    return GgufFile().key(b"general.name", STRING, name).tensor(b"t", [1024], F32, b"1234" * 1024).to_bytes()


class StoreMountCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        mounting.require_fuse()
        self.store = self.path("models")

    def put(self, data, *words):
        path = os.path.join(self.store, *words)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def put_image(self, name, **layers):
        """Put a model of Ollama: for each kind of layer its data."""
        rows = []
        for kind, data in layers.items():
            digest = hashlib.sha256(data).hexdigest()
            self.put(data, "blobs", "sha256-" + digest)
            rows.append({"mediaType": OLLAMA + kind, "digest": "sha256:" + digest})
        self.put(json.dumps({"layers": rows}).encode(), "manifests/registry.ollama.ai/library", name)

    def read(self, *names):
        with open(os.path.join(self.mountpoint, *names), "rb") as file:
            return file.read()

    def names(self, *folder):
        return sorted(os.listdir(os.path.join(self.mountpoint, *folder)))


class TestStores(StoreMountCase):
    def test_a_store_of_ollama(self):
        text, eye = model(b"text"), model(b"eye")
        self.put_image("seer/1b", model=text, projector=eye, template=b"{{ .Prompt }}", params=b"{}", license=b"MIT",
                       system=b"Be brief.", messages=b"[]")
        self.put_image("plain/latest", model=text)
        self.put(b"{", "manifests/registry.ollama.ai/library/broken/latest")
        self.mountpoint = self.mount("ollama:" + self.store)
        self.assertEqual(["broken", "llama-server", "models.json", "models.tsv", "plain", "presets.ini", "seer"],
                         self.names())
        self.assertEqual(text, self.read("seer/1b/model.gguf"))
        self.assertEqual(eye, self.read("seer/1b/mmproj.gguf"))
        for name, data in (("template", b"{{ .Prompt }}"), ("params.json", b"{}"), ("license", b"MIT"),
                           ("system", b"Be brief."), ("messages", b"[]")):
            self.assertEqual(data, self.read("seer/1b", name))
        self.assertRegex(self.read("broken/latest/error.txt"), b"^broken/latest: .*not JSON")
        self.put_image("new/latest", model=text)
        self.assertEqual(text, self.read("new/latest/model.gguf"))
        # A blob stays when its model is removed, and a tag can become that of another blob.
        self.put_image("new/latest", model=eye)
        self.assertEqual(eye, self.read("new/latest/model.gguf"))
        os.unlink(os.path.join(self.store, "manifests/registry.ollama.ai/library/new/latest"))
        self.assertFalse(os.path.exists(os.path.join(self.mountpoint, "new/latest/model.gguf")))

    def test_links_for_llama_server(self):
        text, eye = model(b"text"), model(b"eye")
        self.put_image("seer/1b", model=text, projector=eye)
        self.put_image("plain/latest", model=text)
        self.put_image("broken/latest", template=b"")
        self.mountpoint = self.mount("ollama:" + self.store)
        self.assertEqual(["plain_latest", "seer_1b"], self.names("llama-server"))
        self.assertEqual(["model.gguf"], self.names("llama-server", "plain_latest"))
        self.assertEqual(["mmproj.gguf", "model.gguf"], self.names("llama-server", "seer_1b"))
        link = os.path.join(self.mountpoint, "llama-server/seer_1b/mmproj.gguf")
        self.assertEqual("../../seer/1b/mmproj.gguf", os.readlink(link))
        self.assertEqual(eye, self.read("llama-server/seer_1b/mmproj.gguf"))
        self.assertEqual(text, self.read("llama-server/plain_latest/model.gguf"))
        presets = configparser.ConfigParser()
        presets.read_string("[DEFAULT]\n" + self.read("presets.ini").decode())
        self.assertEqual(["plain_latest", "seer_1b"], presets.sections())
        self.assertTrue(os.path.samefile(presets["seer_1b"]["mmproj"], link))
        self.assertEqual(2, len([line for line in self.read("models.tsv").splitlines() if b"\tcomplete\t" in line]))

    def test_links_of_equal_names(self):
        first, second = model(b"first"), model(b"second")
        self.put(first, "a", "b.gguf")
        self.put(second, "a_b.gguf")
        for name in ("c]d", "c;d", "c#d"):
            self.put(first, name + ".gguf")
        self.mountpoint = self.mount(self.store)
        texts = {name: self.read("llama-server", name, "model.gguf") for name in self.names("llama-server")}
        self.assertEqual({"a_b", "a_b~2", "c_d", "c_d~2", "c_d~3"}, set(texts))
        self.assertNotRegex(self.read("presets.ini"), rb"[;#]|\].")
        self.assertEqual({first, second}, set(texts.values()))

    def test_mount_points_that_presets_cannot_name(self):
        self.put(model(b"first"), "a", "b.gguf")
        for name in ("c;d", "c#d", "c\nd"):
            mountpoint = self.path(name)
            os.mkdir(mountpoint)
            self.mountpoint = self.mount(self.store, mountpoint=mountpoint)
            presets = configparser.ConfigParser()
            presets.read_string("[DEFAULT]\n" + self.read("presets.ini").decode())
            self.assertEqual([], presets.sections())
            self.assertIn(b"\n; no models: the mount point", self.read("presets.ini"))

    def test_one_model_with_what_belongs_to_it(self):
        self.put_image("seer/1b", model=model(b"text"), projector=model(b"eye"), template=b"{{ .Prompt }}")
        self.mountpoint = self.mount(f"ollama:{self.store}:seer:1b")
        self.assertEqual(model(b"eye"), self.read("mmproj.gguf"))
        self.assertEqual(b"{{ .Prompt }}", self.read("template"))
        result = self.run_ggufs("--cat", f"ollama:{self.store}:seer:1b", "template")
        self.assertEqual("{{ .Prompt }}", result.out)


@unittest.skipUnless(os.path.isdir(STORES), "no fixtures")
class TestFixtures(StoreMountCase):
    def test_lists(self):
        for tree, name, folders in (
                ("ollama-basic", "ollama:{}/models", {"broken/latest", "hf.co/tiny/nano-GGUF/Q8_0", "llama3.2/1b",
                                                      "llama3.2/latest-q4", "nano-lora/latest", "nano-mlx/latest",
                                                      "someone/old-mistral/latest", "vision/latest"}),
                ("lmstudio", "lmstudio:{}/.lmstudio/models",
                 {"lmstudio-community/vision-GGUF/vision-F16", "mlx-community/nano-fp16", "tiny/nano-GGUF/nano-Q4_0",
                  "tiny/nano-GGUF/nano-Q8_0", "tiny/nano-split-GGUF/nano-F16"}),
                ("llama-server-models-dir", "{}/models", {"nano-Q8_0", "nano-split/nano-F16", "vision-F16/vision-F16"}),
                ("oci-layout", "oci:{}/image", {"raw", "tar", "targz", "shards", "docker", "docker-vision", "docker-v02",
                                                "nested/raw", "nested/tar"})):
            with tarfile.open(os.path.join(STORES, tree + ".tar.gz")) as archive:
                archive.extractall(self.folder)
            mountpoint = self.mount(name.format(self.path(tree)), mountpoint=self.new_mountpoint(tree + ".mnt"))
            with open(os.path.join(mountpoint, "models.json"), encoding="utf-8") as file:
                models = json.load(file)
            self.assertEqual(folders, {row["name"] for row in models})
            self.assertEqual([], [row["name"] for row in models if not row["error"] and not row["modified"]])
            for row in models:
                names = os.listdir(os.path.join(mountpoint, row["name"]))
                self.assertIn("error.txt" if row["error"] else "model.gguf", names)


if __name__ == "__main__":
    unittest.main()
