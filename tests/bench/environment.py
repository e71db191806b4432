"""The machine and the environment variables of a benchmark."""

import os
import platform


def listed(name):
    return [word for word in os.environ.get(name, "").split(",") if word]


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()
