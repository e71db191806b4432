#!/usr/bin/env python3
"""
Measures ggufs-run and prints a table. `make bench-run` builds the programs and runs it.

The models have random weights (tests/bench/make_run_model.c) and are made once, in build/; all
of them take 8 GB. ggufs-run mounts each one itself. Other programs run the same models in turns with
it, and a row then shows the medians of both, and the median and range of their ratios. The whole
table takes three hours; these variables choose and shorten:

    LLAMA_BENCH=path/to/llama-bench   compare with llama.cpp
    IK_BENCH=path/to/llama-bench      compare with ik_llama.cpp
    BENCH_RUN_TYPES=Q4_0,mamba2       only these models
    BENCH_RUN_TOKENS=512,32           tokens of the prompt, and tokens generated; 512,32@4096: after
                                      a context of 4096, with the peers' flash attention
    BENCH_RUN_THREADS=2               threads of all programs; default: one per processor
    BENCH_RUN_ROUNDS=3                rounds
    BENCH_RUN_SIZES="layers=2"        other sizes of the models, see build/make-run-model
    BENCH_RUN_VOCABULARY=model.gguf   the tokenizer for drafts, of at most 32,000 tokens
    BENCH_BUSY=yes                    measure on a busy machine as well

It ends without a table while other programs or the host take more than 5 % of the processors, and
if the rounds of a program differ by more than 5 %.

The rows "drafts" show text generated with drafts and without, see bench_drafts.c and draft_texts.py.
"""
import json
import os
import platform
import struct
import subprocess
import sys
import tempfile
import time

import draft_texts
import mounts
from environment import (compiler, describe_peer, listed, processor, processor_times, refuse_load,
                         refuse_spread, refuse_stolen)
from table import Table

RUNNER = os.path.join(mounts.BUILD, "ggufs-run")
MAKE_MODEL = os.path.join(mounts.BUILD, "make-run-model")
BENCH_BANDWIDTH = os.path.join(mounts.BUILD, "bench-bandwidth")
BENCH_DRAFTS = os.path.join(mounts.BUILD, "bench-drafts")

# The arguments of make-run-model.
MODELS = {
    name: ["llama", name]
    for name in ("Q4_K_M Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ2_S IQ3_S IQ4_NL IQ4_XS MXFP4 "
                 "BF16 F16").split()
} | {"qwen3moe": ["qwen3moe"], "gpt-oss": ["gpt-oss"], "mamba2": ["mamba2"]}

PEERS = {"llama.cpp": "LLAMA_BENCH", "ik_llama.cpp": "IK_BENCH"}

# The least ratios to the speeds of a peer, and the least share of the read bandwidth: with the weights
# in huge pages, and without.
TEXT_RATIO = 1.1
PROMPT_RATIOS = {"ik_llama.cpp": 1.3, "llama.cpp": 1.05}
BANDWIDTH_PERCENT = {True: 85, False: 70}

# Models of which drafts are measured, dense and with experts.
DRAFTED = ["Q4_K_M", "qwen3moe"]
VOCABULARY = "../shared/fixtures/tokenizers/ggml-vocab-llama-spm.gguf"


class Failure(Exception):
    """A program failed; the text says why."""


def output_of(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise Failure(f"{arguments[0]}: {lines[-1]}")
    return done.stdout


def make_model(table, name, sizes):
    path = os.path.join(mounts.BUILD, "-".join(["run", name, *sizes]) + ".gguf")
    if not os.path.exists(path):
        table.progress(f"{path}: writing")
        output_of([MAKE_MODEL, path + ".part", *MODELS[name], *sizes])
        os.replace(path + ".part", path)
    return path


def numbers(tokens):
    """Returns the numbers of tokens of the prompt and of the text, as words."""
    return tokens.partition("@")[0].split(",")


def run_ours(model, tokens, threads):
    return json.loads(output_of([RUNNER, "--bench", tokens, "-t", threads, "--json", model]))


def run_peer(program, model, tokens, threads):
    """Run a llama-bench. Returns tokens per second, as {"prompt": ..., "text": ...}."""
    (n_prompt, n_text), depth = numbers(tokens), tokens.partition("@")[2]
    tests = json.loads(output_of([program, "-m", model, "-p", n_prompt, "-n", n_text, "-t", threads,
                                  *(["-d", depth, "-fa", "1"] if depth else []), "-r", "1", "-o", "json"]))
    return {"text" if test["n_gen"] > 0 else "prompt": test["avg_ts"] for test in tests}


def measure(table, name, model, tokens, threads, peers):
    """Take turns. Returns our results, and those of each peer that can run the model."""
    ours, theirs = [], {peer: [] for peer in peers}
    for turn in range(table.rounds):
        progress = f"{name}, round {turn + 1} of {table.rounds}"
        table.progress(f"{progress}, ggufs-run")
        ours.append(run_ours(model, tokens, threads))
        for peer in list(theirs):
            table.progress(f"{progress}, {peer}")
            try:
                theirs[peer].append(run_peer(peers[peer], model, tokens, threads))
            except Failure as failure:
                table.line(f"no rows against {peer}: {failure}")
                del theirs[peer]
    return ours, theirs


def add_speeds(table, name, tokens, ours, theirs):
    for test, n_tokens in zip(("prompt", "text"), numbers(tokens)):
        if int(n_tokens) == 0:
            continue
        speeds = [result[test]["tokens_per_second"] for result in ours]
        for who, figures in [("ggufs-run", speeds), *((peer, [result[test] for result in results])
                                                      for peer, results in theirs.items())]:
            refuse_spread(figures, f"{name}, {test} of {who}")
        what = f"{test} of {n_tokens}"
        if not theirs:
            table.row(what, speeds, None, "tok/s")
        for peer, results in theirs.items():
            least = TEXT_RATIO if test == "text" else PROMPT_RATIOS[peer]
            table.row(f"{what}, {peer}", speeds, [result[test] for result in results], "tok/s",
                      ("ratio", ">=", least), f"{test}, {peer}")


def first_token(model, is_cold):
    """Return the seconds from the start of ggufs-run to the logits of a single token."""
    if is_cold:
        with open(model, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    with tempfile.NamedTemporaryFile() as tokens:
        tokens.write(bytes(4))
        tokens.flush()
        started = time.monotonic()
        output_of([RUNNER, "--tokens", tokens.name, "--logits", "/dev/null", model])
    return time.monotonic() - started


def add_others(table, model, threads, ours):
    """Rows without a peer."""
    bandwidth = [float(output_of([BENCH_BANDWIDTH, threads])) for _ in ours]
    table.row("read bandwidth", [value * 1e-9 for value in bandwidth], None, "GB/s")
    shares = [100 * result["text"]["tokens_per_second"] * result["token_bytes"] / value
              for result, value in zip(ours, bandwidth)]
    is_huge = all(result["memory"]["huge_page_bytes"] > 0.9 * result["weights_bytes"] for result in ours)
    if any(shares):
        table.row("share of it, text", shares, None, "%", ("ours", ">=", BANDWIDTH_PERCENT[is_huge]),
                  "share of it, text")
    for what, is_cold in (("cold", True), ("warm", False)):
        table.row(f"first token, {what}", [first_token(model, is_cold) for _ in ours], None, "s")
    for what, member in (("anonymous memory", "anonymous_bytes"), ("all memory", "total_bytes")):
        table.row(what, [result["memory"][member] * 1e-6 for result in ours], None, "MB")
    table.row("weights in huge pages", [100 * result["memory"]["huge_page_bytes"] / result["weights_bytes"]
                                        for result in ours], None, "%")
    table.line(f"kernels: {ours[0]['kernels']}")


def write_ids(path, text, vocabulary):
    """Tokenize and write 32-bit ids."""
    done = subprocess.run([RUNNER, "--tokenize", vocabulary], input=text, capture_output=True,
                          text=True, check=True)
    ids = [int(word) for word in done.stdout.split()]
    with open(path, "wb") as file:
        file.write(struct.pack(f"={len(ids)}i", *ids))


def add_drafts(table, model, threads):
    vocabulary = os.environ.get("BENCH_RUN_VOCABULARY", VOCABULARY)
    if not os.path.exists(vocabulary):
        table.line(f"no rows of drafts: {vocabulary} is missing")
        return
    with tempfile.TemporaryDirectory() as folder:
        prompt, text = os.path.join(folder, "prompt"), os.path.join(folder, "text")
        for what, question, answer, least in draft_texts.texts():
            table.progress(f"drafts, {what}")
            write_ids(prompt, question, vocabulary)
            write_ids(text, answer, vocabulary)
            out = output_of([BENCH_DRAFTS, str(table.rounds), prompt, text, "-t", threads, model])
            rounds = [line.split() for line in out.splitlines()]
            table.row(f"drafts, {what}", [float(words[1]) for words in rounds],
                      [float(words[0]) for words in rounds], "tok/s", ("ratio", ">=", least),
                      f"drafts, {what}")


def main():
    names = listed("BENCH_RUN_TYPES") or list(MODELS)
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        sys.exit(f"BENCH_RUN_TYPES: no model {', '.join(unknown)}; available: {', '.join(MODELS)}")
    tokens = os.environ.get("BENCH_RUN_TOKENS", "512,32")
    n_processors = len(os.sched_getaffinity(0))
    threads = os.environ.get("BENCH_RUN_THREADS", str(n_processors))
    sizes = os.environ.get("BENCH_RUN_SIZES", "").split()
    peers = {peer: os.environ[variable] for peer, variable in PEERS.items()
             if os.environ.get(variable)}
    table = Table(int(os.environ.get("BENCH_RUN_ROUNDS", "3")))

    refuse_load()
    table.line(f"{processor()}, {n_processors} processors, Linux {platform.release()}; {threads} "
               f"threads, {table.rounds} rounds")
    table.line(f"ggufs-run: {compiler(RUNNER)}")
    for peer, program in peers.items():
        built, flaws = describe_peer(program)
        table.line(f"{peer}: {built}" + (f"\nNOT ITS BEST FORM: {flaws}" if flaws else ""))
    for name in names:
        try:
            before = processor_times()
            model = make_model(table, name, sizes)
            ours, theirs = measure(table, name, model, tokens, threads, peers)
        except Failure as failure:
            sys.exit(str(failure))
        refuse_stolen(before, name)
        table.section(f"{name}, {os.path.getsize(model) / 1e9:.2f} GB", base="peer" if peers else "")
        add_speeds(table, name, tokens, ours, theirs)
        add_others(table, model, threads, ours)
        if name in DRAFTED:
            add_drafts(table, model, threads)
    table.summary()


main()
