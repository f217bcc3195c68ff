/* HDF5's filter 32015, "zstd": one frame for each chunk; client value 0 is the level.
 *
 * The host program has libhdf5 in whichever way it likes, so nothing of it is called: buffers come
 * from malloc() and go to free(), as libhdf5's own do, and 0 is the only way to say no. */

#include <H5PLextern.h>
#include <stdint.h>
#include <stdlib.h>
#include <zstd.h>

#define FILTER_ID 32015

/* HDF5 counts the bytes of a chunk in 32 bits. */
#define MOST_CHUNK_BYTES UINT32_MAX

static int level_of(size_t num_values, const unsigned values[]) {
  if (num_values == 0) return ZSTD_CLEVEL_DEFAULT;
  if (values[0] < 1) return 1;
  return values[0] > (unsigned)ZSTD_maxCLevel() ? ZSTD_maxCLevel() : (int)values[0];
}

/* Takes `filled` bytes in a block of `room` for what was in *buffer, or nothing at all. */
static size_t replace(void* block, size_t filled, size_t room, size_t* buffer_bytes,
                      void** buffer) {
  if (block == NULL || ZSTD_isError(filled)) {
    free(block);
    return 0;
  }
  free(*buffer);
  *buffer = block;
  *buffer_bytes = room;
  return filled;
}

static size_t compress(int level, size_t num_bytes, size_t* buffer_bytes, void** buffer) {
  const size_t room = ZSTD_compressBound(num_bytes);
  void* const frame = malloc(room);
  const size_t filled = frame == NULL ? 0 : ZSTD_compress(frame, room, *buffer, num_bytes, level);
  return replace(frame, filled, room, buffer_bytes, buffer);
}

static size_t decompress(size_t num_bytes, size_t* buffer_bytes, void** buffer) {
  /* The two values that stand for "unknown" and "no frame" are the largest there are. A frame that
   * claims more than it holds takes addresses, and no memory: what is not written is not there. */
  const unsigned long long content = ZSTD_getFrameContentSize(*buffer, num_bytes);
  if (content == 0 || content > MOST_CHUNK_BYTES) return 0;

  const size_t room = (size_t)content;
  void* const chunk = malloc(room);
  const size_t filled = chunk == NULL ? 0 : ZSTD_decompress(chunk, room, *buffer, num_bytes);
  return replace(chunk, filled, room, buffer_bytes, buffer);
}

static size_t filter(unsigned flags, size_t num_values, const unsigned values[], size_t num_bytes,
                     size_t* buffer_bytes, void** buffer) {
  if ((flags & H5Z_FLAG_REVERSE) != 0) return decompress(num_bytes, buffer_bytes, buffer);
  return compress(level_of(num_values, values), num_bytes, buffer_bytes, buffer);
}

static const H5Z_class2_t zstd_class = {
    .version = H5Z_CLASS_T_VERS,
    .id = FILTER_ID,
    .encoder_present = 1,
    .decoder_present = 1,
    .name = "zstd",
    .can_apply = NULL,
    .set_local = NULL,
    .filter = filter,
};

H5PL_type_t H5PLget_plugin_type(void) { return H5PL_TYPE_FILTER; }

const void* H5PLget_plugin_info(void) { return &zstd_class; }
