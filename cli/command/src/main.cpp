#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "command.hpp"
#include "exit_code.hpp"
#include "hdf5_viewer.hpp"
#include "program.hpp"
#include "signals.hpp"

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == remesh::hdf5_view_option) {
    return remesh::run_hdf5_view_child(argc - 2, argv + 2);
  }
  using remesh::Command;
  const std::array commands{
      // clang-format off
      Command{"inspect", remesh::add_inspect},
      Command{"plan", remesh::add_plan},
      Command{"reshard", remesh::add_reshard},
      Command{"convert", remesh::add_convert},
      Command{"verify", remesh::add_verify},
      Command{"diff", remesh::add_diff},
      Command{"latest", remesh::add_latest},
      Command{"fingerprint", remesh::add_fingerprint},
      Command{"seal", remesh::add_seal},
      Command{"repair", remesh::add_repair},
      Command{"bench", remesh::add_bench},
      Command{"explain", remesh::add_explain},
      Command{"env", remesh::add_env},
      Command{"completion", remesh::add_completion},
      // clang-format on
  };
  static remesh::StopFlag stop;
  remesh::stop_on_signals(stop);
  const int code = remesh::run_program(commands, std::vector<std::string>(argv + 1, argv + argc),
                                       remesh::posix_file_system(), stop);
  if (code == remesh::exit_code::storage) {
    // A file that libhdf5 could not write out stays in its tables, and 1.10.8 crashes on it in
    // what it runs at exit.
    std::fflush(nullptr);
    std::_Exit(code);
  }
  return code;
}
