#include <iostream>
#include <string>

#include <remesh/adapters/open.hpp>
#include <remesh/core/error.hpp>
#include <remesh/verify/verify.hpp>

// Prints the tensors of a checkpoint, and whether it is whole: 0, 1, or 2 if it cannot be opened.
int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string path = argv[1];
  const auto open = [&](remesh::Findings& findings) {
    return remesh::open_reader(remesh::posix_file_system(), path, "", findings);
  };
  try {
    remesh::StrictFindings none_allowed;
    const auto reader = open(none_allowed);
    for (const remesh::TensorDesc& tensor : reader->catalog().tensors) {
      std::cout << tensor.name << ' ' << remesh::to_string(tensor.dtype) << ' '
                << remesh::num_bytes(tensor) << '\n';
    }
    remesh::ThreadPool pool(2);
    remesh::MemoryBudget budget(remesh::MemoryBudget::least_bytes);
    remesh::Progress progress;
    const remesh::StopFlag stop;
    const remesh::Report report =
        remesh::verify({pool, budget, progress, stop}, remesh::Suspect(open), remesh::Level::full);
    const auto errors = report.count(remesh::Severity::error);
    std::cout << report.tensors << " tensors, " << errors << " errors\n";
    return errors == 0 ? 0 : 1;
  } catch (const remesh::Error& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
