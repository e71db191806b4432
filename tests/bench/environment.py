"""The machine, the programs and the environment variables of a benchmark."""

import os
import platform
import re
import subprocess
import sys
import time

# The largest share of the processors that others or the host may take, and spread of rounds.
MOST_BUSY_PERCENT = 5


def listed(name):
    return [word for word in os.environ.get(name, "").split(",") if word]


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def has_flag(flag):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return re.search(rf"^flags.*\b{flag}\b", file.read(), re.M) is not None


def processor_times():
    """Returns the time of all processors since the start: in all, without work, and stolen by the host."""
    with open("/proc/stat", encoding="utf-8") as file:
        times = [int(word) for word in file.readline().split()[1:9]]
    return sum(times), times[3] + times[4], times[7]


def refuse(problem):
    """Ends the benchmark because of a problem, if there is one."""
    if problem and os.environ.get("BENCH_BUSY") != "yes":
        sys.exit(f"no table: {problem}; BENCH_BUSY=yes measures all the same")


def refuse_load(seconds=2):
    """Ends the benchmark if the machine works for others."""
    before = processor_times()
    time.sleep(seconds)
    total, idle, stolen = (after - at for after, at in zip(processor_times(), before))
    busy = 100 * (total - idle) / max(total, 1)
    if busy > MOST_BUSY_PERCENT:
        refuse(f"the processors are busy for {busy:.0f} % of the time before it begins, "
               f"{100 * stolen / total:.0f} % stolen by the host; the load is {os.getloadavg()[0]:.1f}")


def refuse_stolen(before, what):
    """Ends the benchmark if the host has taken much time since `before`, of processor_times()."""
    total, _, stolen = (after - at for after, at in zip(processor_times(), before))
    if 100 * stolen > MOST_BUSY_PERCENT * total:
        refuse(f"{what}: the host has taken {100 * stolen / total:.0f} % of the processors' time")


def refuse_spread(figures, what):
    """Ends the benchmark if the speeds of one program in several rounds differ."""
    spread = 100 * (max(figures) / min(figures) - 1) if figures and min(figures) > 0 else 0
    if spread > MOST_BUSY_PERCENT:
        refuse(f"{what}: the rounds differ by {spread:.0f} %")


def compiler(program):
    """Returns what compiled a program or a library, by its section .comment."""
    done = subprocess.run(["readelf", "-p", ".comment", program], capture_output=True, text=True,
                          check=False)
    return ", ".join(dict.fromkeys(re.findall(r"\] +(\S.*)", done.stdout))) or "unknown compiler"


def cmake_cache(program):
    """Returns the entries of CMakeCache.txt in a folder above a program, or {}."""
    folder = os.path.dirname(os.path.realpath(program))
    while folder != os.path.dirname(folder):
        path = os.path.join(folder, "CMakeCache.txt")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return dict(re.findall(r"^(\w+):\w+=(.*)$", file.read(), re.M))
        folder = os.path.dirname(folder)
    return {}


def describe_peer(program):
    """Returns how a llama-bench was built, and why that is not its best form, or ""."""
    cache, flaws = cmake_cache(program), []
    libraries = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    found = re.search(r"=> (\S*libggml-cpu\S*)", libraries) or re.search(r"=> (\S*libggml\S*)", libraries)
    by = compiler(found.group(1) if found else program)
    shown = [by] + [f"{name}={cache[name]}" for name in
                    ("CMAKE_BUILD_TYPE", "CMAKE_C_FLAGS", "GGML_NATIVE", "GGML_CPU_ALL_VARIANTS",
                     "GGML_OPENMP", "GGML_BLAS") if cache.get(name)]
    if not cache:
        flaws.append("there is no CMakeCache.txt above it, which would say how it was built")
    elif cache.get("CMAKE_BUILD_TYPE") != "Release":
        flaws.append("its build type is not Release")
    if cache.get("GGML_NATIVE") == "OFF" and cache.get("GGML_CPU_ALL_VARIANTS") != "ON":
        flaws.append("GGML_NATIVE is OFF, so it lacks this processor's instructions")
    if has_flag("amx_int8") and re.search(r"GCC: [^,]*\b1[0-2]\.", by):
        flaws.append("this gcc breaks AMX, which clang 19 compiles")
    return "; ".join(shown), "; ".join(flaws)
