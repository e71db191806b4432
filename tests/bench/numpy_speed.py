"""
Decodes tensors with the gguf package: numpy_speed.py MODEL MOUNTPOINT ROUNDS TYPE...

bench.py runs it in a Python that may lack the package. It prints a line for each type that the
package supports: the name, and GB/s of float32 for each round.
"""
import json
import os
import sys
import time


def main():
    import numpy
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize

    model, mountpoint, rounds, *names = sys.argv[1:]
    for name in names:
        if name not in GGMLQuantizationType.__members__:
            continue
        folder = os.path.join(mountpoint, "tensors", name)
        with open(os.path.join(folder, "info"), encoding="utf-8") as file:
            info = json.load(file)
        # The shape that the reader of the package gives.
        raw = numpy.memmap(model, numpy.uint8, "r", info["offset"],
                           (info["shape"][0], info["n_bytes"] // info["shape"][0]))
        speeds = []
        try:
            for _ in range(int(rounds)):
                start = time.perf_counter()
                values = dequantize(raw, GGMLQuantizationType[name])
                # For F32 the result is a view of the file, which has not been read yet.
                if values.dtype != numpy.float32 or numpy.may_share_memory(values, raw):
                    values = numpy.array(values, numpy.float32)
                speeds.append(4 * values.size / (time.perf_counter() - start) / 1e9)
        except (NotImplementedError, ValueError):
            continue
        print(name, *speeds, flush=True)


try:
    main()
except ImportError as error:
    sys.exit(str(error))
