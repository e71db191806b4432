"""
Read models in GGUF files, and in the older files of ggml, through libggufs.

    import ggufs

    with ggufs.open("model.gguf") as m:
        m.metadata["general.architecture"]            # 'llama'
        m.metadata["tokenizer.ggml.tokens"][:5]       # lazy: only these are read
        t = m["blk.0.attn_q.weight"]                  # a lazy array
        t.shape, t.type, t.nbytes                     # (4096, 4096), 'Q4_K', 9437184
        for name, t in m.tensors.items(): ...         # all of them, a mapping like m.metadata and m.files
        t[10:20]                                      # float32, only these rows are read
        t.numpy("f16")                                # all of it
        m.open("hf/config.json").read()               # a file of the tree that `ggufs` mounts

NumPy is needed by what returns arrays; nothing else is needed. Calls let other Python threads run. Models, tensors and
files may be used by any thread. After Model.close() they raise ValueError; what was read stays valid. With
multiprocessing, open the model in the child, or send it: it is pickled by its path.
"""
from ._files import File, Files
from ._library import Error, StaleError, UnsupportedType, library, text
from ._model import Array, Finding, Metadata, Model, Tensor, Tensors, check, open
from ._types import Type, dequantize, quantize, types

__version__ = text(library.ggufs_version())
__all__ = ["Array", "Error", "File", "Files", "Finding", "Metadata", "Model", "StaleError", "Tensor", "Tensors", "Type",
           "UnsupportedType", "check", "dequantize", "open", "quantize", "types"]
