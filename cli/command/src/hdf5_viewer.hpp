#pragma once

#include <string>

#include "remesh/core/progress.hpp"
#include "remesh/store/file_system.hpp"
#include "remesh/verify/verify.hpp"

namespace remesh {

/// What makes this program the child that writes a view, in the place of a verb; main() asks
/// before anything else. Not for people, and in no help.
inline constexpr const char* hdf5_view_option = "--hdf5-view";

/// A viewer of the files of `checkpoint`: each is read by a child process of its own. Both
/// arguments must outlive it.
Hdf5Viewer hdf5_viewer(const FileSystem& files, const FileSystem::Path& checkpoint,
                       const StopFlag& stop);

/// What the child does with the arguments behind `hdf5_view_option`. Returns its exit code.
int run_hdf5_view_child(int count, char** arguments);

}  // namespace remesh
