"""Other programs read and write zstd chunks (HDF5 filter 32015) through the plugin.

    zstd_plugin_test.py PLUGIN_DIRECTORY

h5py and h5dump, as Debian has them, find the plugin by HDF5_PLUGIN_PATH alone. Frames that did not come from the
plugin are made with libzstd itself, and shuffled with numpy.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

# libhdf5 reads this once, when it is loaded.
os.environ["HDF5_PLUGIN_PATH"] = sys.argv.pop(1)

import h5py  # noqa: E402
import numpy as np  # noqa: E402

ZSTD_ID = 32015
MAGIC = bytes.fromhex("28b52ffd")

zstd = ctypes.CDLL("libzstd.so.1")
for name in ("ZSTD_compressBound", "ZSTD_compress", "ZSTD_decompress"):
    getattr(zstd, name).restype = ctypes.c_size_t
zstd.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
zstd.ZSTD_compress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
zstd.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]


def compressed(data, level=1):
    frame = ctypes.create_string_buffer(zstd.ZSTD_compressBound(len(data)))
    length = zstd.ZSTD_compress(frame, len(frame), data, len(data), level)
    return frame.raw[:length]


def decompressed(frame, size):
    data = ctypes.create_string_buffer(size)
    assert zstd.ZSTD_decompress(data, size, frame, len(frame)) == size
    return data.raw


def shuffled(values):
    return values.view(np.uint8).reshape(-1, values.itemsize).T.tobytes()


def smooth(shape, dtype=np.float32):
    """Values that compress: a function of the index."""
    return (np.arange(np.prod(shape)).reshape(shape) % 1000 * 0.125).astype(dtype)


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


class Plugin(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = Path(directory.name) / "file.h5"

    def written(self, values, chunks, level=1, shuffle=True):
        with h5py.File(self.path, "w") as file:
            file.create_dataset("d", data=values, chunks=chunks, shuffle=shuffle, compression=ZSTD_ID,
                                compression_opts=() if level is None else (level,))

    def with_chunk(self, stored, values, shuffle=True):
        """A dataset of one chunk in which `stored` lies."""
        with h5py.File(self.path, "w") as file:
            dataset = file.create_dataset("d", shape=values.shape, dtype=values.dtype, chunks=values.shape,
                                          shuffle=shuffle, compression=ZSTD_ID, compression_opts=(1,))
            dataset.id.write_direct_chunk((0,) * values.ndim, stored)

    def read(self):
        with h5py.File(self.path, "r") as file:
            return file["d"][()]

    def direct_chunk(self, offset):
        with h5py.File(self.path, "r") as file:
            mask, stored = file["d"].id.read_direct_chunk(offset)
            self.assertEqual(mask, 0)
            return stored

    def test_h5py_reads_what_it_writes(self):
        for dtype in (np.uint8, np.float16, np.float32, np.float64):
            for level in (None, 1, 3, 19, 100):
                with self.subTest(dtype=dtype, level=level):
                    values = smooth((300, 70), dtype)
                    self.written(values, (64, 70), level)
                    np.testing.assert_array_equal(self.read(), values)
                    self.assertLess(self.path.stat().st_size, values.nbytes)

    def test_what_does_not_compress_is_read_too(self):
        values = np.random.default_rng(1).integers(0, 2**32, (100, 100), np.uint32)
        self.written(values, (30, 100))
        np.testing.assert_array_equal(self.read(), values)

    def test_a_chunk_is_one_plain_frame(self):
        values = smooth((64, 64))
        self.written(values, (64, 64), level=5)
        stored = self.direct_chunk((0, 0))
        self.assertEqual(stored[:4], MAGIC)
        self.assertEqual(decompressed(stored, values.nbytes), shuffled(values))
        self.assertEqual(stored, compressed(shuffled(values), 5))

    def test_the_level_is_heeded(self):
        values = smooth((64, 64))
        for level in (1, 19):
            self.written(values, (64, 64), level)
            self.assertEqual(self.direct_chunk((0, 0)), compressed(shuffled(values), level))

    def test_frames_of_others_are_read(self):
        values = smooth((128, 32), np.float16)
        for level in (1, 19):
            frame = compressed(shuffled(values), level)
            self.with_chunk(frame, values)
            self.assertEqual(self.direct_chunk((0, 0)), frame)
            np.testing.assert_array_equal(self.read(), values)

    def test_h5dump_and_h5ls_show_the_filter_and_the_values(self):
        values = np.arange(1000, dtype=np.int32)
        self.written(values, (100,), level=7)
        header = run("h5dump", "-p", "-H", str(self.path))
        self.assertRegex(header, r"SHUFFLE\s+USER_DEFINED_FILTER \{\s+FILTER_ID 32015\s+COMMENT zstd\s+PARAMS \{ 7 \}")
        self.assertIn("zstd-32015", run("h5ls", "-v", str(self.path)))
        self.assertIn(" 996, 997, 998, 999", run("h5dump", "-d", "/d", str(self.path)))

    def test_damaged_frames_are_errors(self):
        values = smooth((64, 64))
        frame = compressed(shuffled(values))
        damages = {"nothing": b"\0", "no magic": b"\0" + frame[1:], "cut": frame[:-5], "more behind it": frame + b"\0"}
        for name, stored in damages.items():
            for shuffle in (True, False):  # the filter that comes after notices some of it by itself
                with self.subTest(name, shuffle=shuffle):
                    self.with_chunk(stored, values, shuffle)
                    with self.assertRaises(OSError):
                        self.read()

    def test_no_flipped_bit_in_the_blocks_is_a_crash(self):
        values = smooth((16, 16))
        frame = compressed(shuffled(values))
        for at in range(8 * 7, 8 * len(frame)):  # the header (magic, descriptor, size) has a test of its own
            stored = bytearray(frame)
            stored[at // 8] ^= 1 << at % 8
            self.with_chunk(bytes(stored), values)
            try:
                self.assertEqual(self.read().shape, values.shape)
            except OSError:
                pass

    def test_a_frame_that_claims_much_is_an_error(self):
        values = smooth((64, 64))
        for size in (2**31, 2**50, 2**64 - 1, 2**64 - 2):
            with self.subTest(size=size):
                block = (4096 << 3 | 3).to_bytes(3, "little") + b"x"  # 4096 times x, and the last
                self.with_chunk(MAGIC + b"\xe0" + size.to_bytes(8, "little") + block, values)
                with self.assertRaises(OSError):
                    self.read()


if __name__ == "__main__":
    unittest.main()
