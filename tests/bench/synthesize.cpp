// Writes a Hugging Face checkpoint of any size from a config.json: every tensor that the model must
// have, every value a function of the tensor's name and the element's index.
//
//   synthesize CONFIG.json OUT [--dtype bf16] [--states master,exp_avg,exp_avg_sq] [--shard-size
//   SIZE] [--normal]
//
// A value is a hash, mapped to magnitudes like those of trained weights: no two pages are alike,
// and none is zero. With --normal they are distributed as weights are, nearly normally with a
// deviation of 0.02, and compress as these do.

#include <bit>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "remesh/adapters/open.hpp"
#include "remesh/core/budget.hpp"
#include "remesh/core/buffer.hpp"
#include "remesh/core/digest.hpp"
#include "remesh/core/error.hpp"
#include "remesh/core/thread_pool.hpp"
#include "remesh/models/model_map.hpp"
#include "remesh/plan/panels.hpp"

namespace remesh {
namespace {

struct Options {
  std::string config;
  std::string out;
  std::string dtype = "bf16";
  std::vector<std::string> states;
  std::string shard_size;
  bool normal = false;
};

std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

// Exponents of about 2^-16 to 2^-1, as weights have; sign and fraction as they come.
std::uint16_t as_bf16(std::uint64_t hash) {
  const auto exponent = static_cast<std::uint16_t>(126U - ((hash >> 16) & 15U));
  return static_cast<std::uint16_t>((hash & 0x807fU) | (exponent << 7));
}
std::uint32_t as_f32(std::uint64_t hash) {
  return (std::uint32_t{as_bf16(hash)} << 16) | static_cast<std::uint32_t>((hash >> 32) & 0xffffU);
}

// The sum of four uniform values, which is nearly normal. Half a step aside, so that it is never
// zero.
std::uint32_t as_normal_f32(std::uint64_t hash) {
  constexpr float deviation_of_sum = 37837.0F;
  const auto sum = static_cast<std::int32_t>((hash & 0xffffU) + ((hash >> 16) & 0xffffU) +
                                             ((hash >> 32) & 0xffffU) + (hash >> 48));
  return std::bit_cast<std::uint32_t>((static_cast<float>(sum - 131070) + 0.5F) * 0.02F /
                                      deviation_of_sum);
}
std::uint16_t as_normal_bf16(std::uint64_t hash) {
  return static_cast<std::uint16_t>((as_normal_f32(hash) + 0x8000U) >> 16);
}

// The elements [begin, ...) of a tensor in row-major order.
void fill(const TensorDesc& desc, std::uint64_t seed, bool normal, std::int64_t begin,
          std::span<std::byte> into) {
  const bool half = desc.dtype == DType::bf16;
  const std::size_t width = half ? 2 : 4;
  for (std::size_t i = 0; i < into.size() / width; ++i) {
    const std::uint64_t hash = mixed(seed + static_cast<std::uint64_t>(begin) + i);
    if (half) {
      const std::uint16_t value = normal ? as_normal_bf16(hash) : as_bf16(hash);
      std::memcpy(into.data() + i * width, &value, width);
    } else {
      const std::uint32_t value = normal ? as_normal_f32(hash) : as_f32(hash);
      std::memcpy(into.data() + i * width, &value, width);
    }
  }
}

std::vector<TensorDesc> tensors_of(const Options& options, const std::string& config) {
  const ModelMap* map = shipped_map(config);
  if (map == nullptr) throw Error(Errc::unsupported, "no model map that ships fits this config");
  const auto dtype = parse_dtype(options.dtype);
  if (!dtype || (*dtype != DType::bf16 && *dtype != DType::f32)) {
    throw Error(Errc::invalid_argument, "--dtype is bf16 or f32");
  }
  std::vector<TensorDesc> tensors = map->needed_tensors(config, *dtype);
  const std::size_t parameters = tensors.size();
  for (std::size_t i = 0; i < parameters; ++i) {
    for (const std::string& state : options.states) {
      tensors.push_back({tensors[i].name + "@" + state, DType::f32, tensors[i].extent});
    }
  }
  return tensors;
}

struct Piece {
  std::size_t tensor;
  Box box;
};

void write_all(Writer& writer, bool normal) {
  constexpr std::int64_t piece_bytes = std::int64_t{8} << 20;
  const std::vector<TensorDesc>& tensors = writer.catalog().tensors;
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (const Box& box : panels(tensors[i].extent, bits(tensors[i].dtype) / 8, piece_bytes)) {
      pieces.push_back({i, box});
    }
  }
  ThreadPool pool(0);
  std::vector<Buffer> buffers;
  for (int worker = 0; worker < pool.size(); ++worker) buffers.emplace_back(piece_bytes);
  pool.run(pieces.size(), [&](std::size_t index, int worker) {
    const auto& [tensor, box] = pieces[index];
    const TensorDesc& desc = tensors[tensor];
    // A piece is whole rows, or a part of one row: its elements follow each other in the tensor.
    std::int64_t begin = 0;
    for (int dim = 0; dim < box.ndim(); ++dim) {
      begin = begin * desc.extent[dim].size() + box[dim].begin;
    }
    const auto bytes = static_cast<std::size_t>(num_bytes(desc.dtype, box));
    const auto into = buffers[static_cast<std::size_t>(worker)].bytes().first(bytes);
    fill(desc, digest_of(std::as_bytes(std::span(desc.name))).value, normal, begin, into);
    writer.write(tensor, box, into, {});
  });
}

int run(const Options& options) {
  FileSystem& files = posix_file_system();
  const std::string config = read_text(files, options.config, std::int64_t{1} << 20);
  Catalog wanted;
  wanted.format = "hf";
  wanted.tensors = tensors_of(options, config);
  wanted.layout = Layout::replicated(Mesh{}, wanted.tensors.size());
  const auto bytes = std::as_bytes(std::span(config));
  wanted.side = {{"config.json", std::ssize(bytes), digest_of(bytes)}};
  WriterOptions how;
  how.job_id = "synthesize";
  how.leftovers = Leftovers::discard;
  if (!options.shard_size.empty()) how.shard_size_bytes = parse_bytes(options.shard_size);
  const auto side = [&](const SideFile&) {
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const auto writer = create_writer(files, options.out, std::move(wanted), side, how);
  write_all(*writer, options.normal);
  writer->seal({}, {});
  writer->publish();
  std::printf("%s\n", options.out.c_str());
  return 0;
}

}  // namespace
}  // namespace remesh

int main(int argc, char** argv) {
  remesh::Options options;
  CLI::App app("a synthetic checkpoint");
  app.add_option("CONFIG", options.config)->required();
  app.add_option("OUT", options.out)->required();
  app.add_option("--dtype", options.dtype);
  app.add_option("--states", options.states)->delimiter(',');
  app.add_option("--shard-size", options.shard_size);
  app.add_flag("--normal", options.normal);
  CLI11_PARSE(app, argc, argv);
  try {
    return remesh::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "synthesize: %s\n", error.what());
    return 1;
  }
}
