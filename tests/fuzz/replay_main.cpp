// Gives every file of a corpus to a fuzz target once, in order, without libFuzzer.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_below(const fs::path& directory) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// In a block of exactly its size, so that the address sanitizer sees a read past its end.
std::vector<std::uint8_t> content_of(const fs::path& path) {
  std::ifstream stream;
  stream.exceptions(std::ios::badbit | std::ios::failbit);
  stream.open(path, std::ios::binary);
  std::vector<std::uint8_t> content(fs::file_size(path));
  stream.read(reinterpret_cast<char*>(content.data()), std::ssize(content));
  return content;
}

int replay(const fs::path& directory) {
  const auto files = files_below(directory);
  if (files.empty()) {
    std::fprintf(stderr, "%s has no inputs to replay\n", directory.c_str());
    return 1;
  }
  for (const auto& file : files) {
    std::fprintf(stderr, "%s\n", file.filename().c_str());  // the last one printed is the culprit
    const auto content = content_of(file);
    LLVMFuzzerTestOneInput(content.data(), content.size());
  }
  std::printf("%zu inputs replayed\n", files.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CORPUS_DIRECTORY\n", argv[0]);
    return 2;
  }
  try {
    return replay(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
