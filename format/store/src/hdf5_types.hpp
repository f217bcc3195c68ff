#pragma once

#include "hdf5.hpp"
#include "remesh/core/dtype.hpp"

namespace remesh::native {

/// The HDF5 type that a dtype is stored as. Kinds that HDF5 has no name for are u8, and an
/// attribute tells them apart; bf16 is described to HDF5 field by field, so that viewers print
/// numbers.
h5::Type hdf5_type(DType dtype);

}  // namespace remesh::native
