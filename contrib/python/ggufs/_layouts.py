"""What ctypes knows of ggufs.h. Written by make_layouts.py, do not edit."""

from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_int, c_int64,
                    c_size_t, c_uint32, c_uint64, c_void_p)

ERROR, WARNING, NOTE = range(3)
UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64, INT64, FLOAT64 = range(13)
F32, F16, BF16, STORED = range(4)
DIRECTORY, FILE, LINK = range(3)


class String(Structure):
    _fields_ = [("data", c_void_p), ("length_bytes", c_uint64)]


class Error(Structure):
    _fields_ = [("code", c_int), ("offset", c_uint64), ("rule", c_char_p), ("remedy", c_char_p),
                ("message", c_char * 1024)]


class Finding(Structure):
    _fields_ = [("severity", c_int), ("offset", c_uint64), ("path", c_char_p), ("tensor", String),
                ("key", String), ("message", c_char_p), ("rule", c_char_p), ("explanation", c_char_p),
                ("remedy", c_char_p)]


class Info(Structure):
    _fields_ = [("format", c_char_p), ("n_keys", c_uint64), ("n_tensors", c_uint64),
                ("alignment_bytes", c_uint64), ("n_files", c_uint32), ("is_big_endian", c_bool)]


class Key(Structure):
    _fields_ = [("name", String), ("type", c_int), ("element_type", c_int), ("n_elements", c_uint64),
                ("element_bytes", c_uint32), ("u64", c_uint64), ("i64", c_int64), ("f64", c_double),
                ("string", String)]


class Type(Structure):
    _fields_ = [("id", c_uint32), ("name", c_char_p), ("program", c_char_p), ("block_elements", c_uint32),
                ("block_bytes", c_uint32), ("row_header_bytes", c_uint32), ("interleave_rows", c_uint32),
                ("tail_bytes", c_uint32), ("can_decode", c_bool), ("can_encode", c_bool),
                ("is_in_ggml", c_bool)]


class Tensor(Structure):
    _fields_ = [("name", String), ("type", POINTER(Type)), ("type_id", c_uint32), ("n_dims", c_uint32),
                ("shape", c_uint64 * 8), ("n_elements", c_uint64), ("size_bytes", c_uint64),
                ("file_offset", c_uint64), ("file_index", c_uint32), ("is_big_endian", c_bool)]


class NodeInfo(Structure):
    _fields_ = [("name", c_char_p), ("target", c_char_p), ("kind", c_int), ("n_children", c_uint32),
                ("parent", c_uint32)]


Each = CFUNCTYPE(None, c_void_p, POINTER(Finding))

# By function: the type of its result, and of its parameters.
FUNCTIONS = {
    "ggufs_version": (c_char_p, []),
    "ggufs_open": (c_int, [c_char_p, c_char_p, POINTER(c_void_p), POINTER(Error)]),
    "ggufs_close": (None, [c_void_p]),
    "ggufs_catch_faults": (c_int, []),
    "ggufs_check": (c_int, [c_char_p, c_char_p, Each, c_void_p]),
    "ggufs_get_info": (POINTER(Info), [c_void_p]),
    "ggufs_file_path": (c_char_p, [c_void_p, c_uint32]),
    "ggufs_recheck": (c_int, [c_void_p]),
    "ggufs_key_at": (POINTER(Key), [c_void_p, c_uint64]),
    "ggufs_find_key": (POINTER(Key), [c_void_p, c_char_p]),
    "ggufs_key_numbers": (c_int, [c_void_p, POINTER(Key), c_uint64, c_uint64, c_void_p]),
    "ggufs_key_strings": (c_int, [c_void_p, POINTER(Key), c_uint64, c_uint64, POINTER(String)]),
    "ggufs_type_at": (POINTER(Type), [c_uint32]),
    "ggufs_find_type": (POINTER(Type), [c_char_p]),
    "ggufs_rows_bytes": (c_int, [POINTER(Type), c_uint64, c_uint64, POINTER(c_uint64)]),
    "ggufs_decode": (c_int, [POINTER(Type), c_void_p, c_uint64, c_uint64, c_void_p]),
    "ggufs_encode": (c_int, [POINTER(Type), c_void_p, c_uint64, c_uint64, c_void_p]),
    "ggufs_tensor_at": (POINTER(Tensor), [c_void_p, c_uint64]),
    "ggufs_find_tensor": (POINTER(Tensor), [c_void_p, c_char_p]),
    "ggufs_read": (c_int, [c_void_p, POINTER(Tensor), c_int, c_uint64, c_uint64, c_void_p]),
    "ggufs_read_stored": (c_int, [c_void_p, POINTER(Tensor), c_uint64, c_size_t, c_void_p]),
    "ggufs_find_node": (c_int, [c_void_p, c_char_p, POINTER(c_uint32)]),
    "ggufs_describe_node": (c_int, [c_void_p, c_uint32, POINTER(NodeInfo)]),
    "ggufs_child": (c_int, [c_void_p, c_uint32, c_uint32, POINTER(c_uint32)]),
    "ggufs_node_size": (c_int, [c_void_p, c_uint32, POINTER(c_uint64)]),
    "ggufs_open_file": (c_int, [c_void_p, c_uint32, POINTER(c_void_p)]),
    "ggufs_close_file": (None, [c_void_p]),
    "ggufs_pread": (c_int64, [c_void_p, c_void_p, c_size_t, c_uint64]),
    "ggufs_cancel": (None, [c_void_p]),
}
