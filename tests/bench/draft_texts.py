"""Texts to measure drafts with: prompts, and what a model would answer."""

import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

SUMMARY = """\
ggufs mounts a GGUF model as a directory tree. Metadata is JSON, every tensor is a directory, and the
quantized values are decoded while they are read. With it you can look into a model with ls, cat, jq
and diff, feed its tensors to NumPy or PyTorch as plain float32 without converting 40 GB, edit metadata
and write the result, turn old ggml, ggjt and rwkv.cpp files into GGUF, and check files from strangers
inside a sandbox. All 35 tensor types are decoded bit for bit as ggml does it. On Debian 12 or newer,
contrib/demo installs packages, builds ggufs and walks through a small sample model, and contrib/test
runs all tests.
"""

STORY = """\
The ferry left an hour late, as it did on most days in autumn, and nobody on the pier complained. Marta
had brought two sandwiches, a book about bees and her grandmother's binoculars, which made everything
look slightly green. Halfway across, the engine coughed and went quiet. Gulls settled along the rail
like customers waiting for a shop to open. An old man unscrewed a flask, offered coffee around and said
that in 1962 they had drifted all the way to the lighthouse, where the keeper taught six of them to
play a card game whose rules he changed whenever he was losing. By the time somebody below deck found
the right wrench, the sun had slid behind the island, the last sandwich was gone, and three strangers
had promised to write to each other. Only one of them ever did.
"""


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def texts():
    """Returns name, prompt, text, and the least speed with drafts relative to that without."""
    source = read("contrib", "runner", "cli", "text_output.c")
    source = source[source.index("bool run_stop_texts_find"):]
    edited = source.replace("longest_begun", "n_held").replace("is_found = true;", "is_found = 1;")
    readme = read("README.md")
    return [
        ("code editing", "Rename longest_begun to n_held in this function:\n\n" + source +
         "\n\nThe edited function:\n\n", edited, 1.5),
        ("summary", readme[:readme.index("## What you see")] + "\n\nA summary:\n\n", SUMMARY, 0.97),
        ("free text", "Write a short story that takes place on a ferry.\n\n", STORY, 0.97),
    ]
