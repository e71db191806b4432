#!/usr/bin/env python3
"""Random mutants of single tokens: which do the unit tests and the smoke mount tests notice?

    tests/mutate.py COPY N [SEED] [FOLDER…]

COPY is a clone of the project that may be changed. Each mutant is built there; the unit tests, for kernels also
check-kernels, and for fs/mount, fs/command and cli/ the mount tests marked "smoke" and those of the source file
(tests/mount/command/test_sources.py) notice it if one fails, crashes or hangs.
"""
import glob
import os
import random
import re
import subprocess
import sys

FOLDERS = ("fs", "gguf", "dequant", "contrib/runner")
SWAPS = {"<=": ("<", "=="), ">=": (">", "=="), "<": ("<=",), ">": (">=",), "==": ("!=",), "!=": ("==",),
         "&&": ("||",), "||": ("&&",), "+": ("-",), "-": ("+",), "+=": ("-=",), "-=": ("+=",), "++": ("--",),
         "true": ("false",), "false": ("true",), "*": ("+",), "/": ("*",), "%": ("/",), "<<": (">>",), ">>": ("<<",)}
TOKEN = re.compile(r"(?<![\w<>=!&|+*/%-])(<=|>=|==|!=|&&|\|\||\+=|-=|<<|>>|<|>|\+|-|\*|/|%)(?= )|\+\+|\btrue\b|\bfalse\b|\b\d+\b")


def code_lines(path):
    """The numbers of lines in functions, without comments, preprocessor and texts."""
    found, inside, comment = [], False, False
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file):
            comment = comment or "/*" in line
            if line.startswith(("{", "}")):
                inside = line.startswith("{")
            elif inside and not comment and line.strip() and not line.lstrip().startswith(("#", '"', "case", "static")):
                found.append(number)
            comment = comment and "*/" not in line
    return found


def mutations(line):
    """(what, new line) for each mutant of a line."""
    masked = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])+\'', lambda m: "\0" * len(m.group()), line)
    for match in TOKEN.finditer(masked):
        token = match.group()
        around = masked[max(0, match.start() - 1):match.start()]
        if token in "*-+<>" and around != " ":
            continue
        for new in (int(token) + 1, max(0, int(token) - 1)) if token.isdigit() else SWAPS.get(token, ()):
            new = str(new)
            if new != token:
                yield f"{token} -> {new}", line[:match.start()] + new + line[match.end():]
    match = re.search(r"\b(if|while) \((.*)\)( \{)?$", masked.rstrip())
    if match and match.group(2).count("(") == match.group(2).count(")"):
        start, end = match.span(2)
        yield "negated", f"{line[:start]}!({line[start:end]}){line[end:]}"
    if re.match(r"\s+(\w[\w>.\[\]-]* [-+|&^*]?= .*;|\w+\(.*\);)$", masked.rstrip()) and " = {" not in masked and \
            not re.match(r"\s+(const |struct |return|u?int\w* |size_t |bool |char |float |double )", masked):
        yield "deleted", re.match(r"\s*", line).group() + ";\n"


def run(command, seconds):
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "2"}
    with subprocess.Popen(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                          env=environment, text=True, errors="replace") as process:
        try:
            text, _ = process.communicate(timeout=seconds)
            return process.returncode, text
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return 124, process.communicate()[0]


def noticed(path):
    """By what a mutant is noticed, None if by nothing, "" if it does not build."""
    if run("make -s -j2 all build/unit-tests", 400)[0] != 0:
        return ""
    # Suites of the folder first: most mutants are noticed there. Nothing else links fs and the runner.
    own = {"dequant": "dequant*|run_multiply", "gguf": "gguf*|keyed*", "fs": "fs_*"}.get(path.split("/")[0], "run_*")
    code, text = run(f"build/unit-tests -j2 --fail-fast --filter '@({own})/*'", 500)
    if code == 0 and "/kernels/" in path and run("make -s -j2 build/check-kernels && build/check-kernels", 400)[0] != 0:
        return "kernels"
    if code == 0 and path.startswith(("gguf", "dequant")):
        code, text = run(f"build/unit-tests -j2 --fail-fast --filter '!({own})/*'", 500)
    if code != 0:
        return " ".join(["unit", *re.findall(r"FAIL\S* (\S+):", re.sub(r"\x1b\[[0-9;]*m", "", text))[:1]])
    if os.path.dirname(path) in ("fs/mount", "fs/command", "contrib/runner/cli"):
        with open("tests/mount/command/test_sources.py", encoding="utf-8") as file:
            own = re.search(rf'"{path}": "(\w+)', file.read())
        names = f"mount/{own[1]}" if own else ""
        for arguments in (names, "--mark=smoke mount"):
            code, text = run(f"tests/run {arguments}", 400) if arguments else (0, "")
            if code != 0:
                return " ".join(re.findall(r"^  tests/run (mount/\S+)", text, re.MULTILINE)[:1]) or str(code)
    return None


def main(copy, n, seed="1", *folders):
    os.chdir(copy)
    source = random.Random(int(seed))
    paths = sorted(path for folder in folders or FOLDERS for path in glob.glob(folder + "/**/*.c", recursive=True))
    lines = [(path, number) for path in paths for number in code_lines(path)]
    results = []
    while len(results) < int(n):
        path, number = source.choice(lines)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        before = text.split("\n")
        choices = list(mutations(before[number]))
        if not choices:
            continue
        what, line = source.choice(choices)
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join([*before[:number], line.rstrip("\n"), *before[number + 1:]]))
            by = noticed(path)
        finally:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        if by == "":
            continue
        results.append(by is not None)
        print(f"{'noticed' if by else 'NOT'}\t{path}:{number + 1}\t{what}\t{before[number].strip()}\t{by or ''}", flush=True)
    print(f"{sum(results)} of {len(results)} noticed", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
