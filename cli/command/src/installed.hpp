#pragma once

#include <string>

/// @file
/// What was installed with the program, seen from where the program lies: a whole installation may
/// be moved.

namespace remesh {

/// Where the schema files of the JSON documents lie; empty where the program is not installed.
std::string schema_directory();

/// Where the filter plugin lies, for HDF5_PLUGIN_PATH of h5dump and h5py; empty likewise.
std::string hdf5_plugin_directory();

}  // namespace remesh
