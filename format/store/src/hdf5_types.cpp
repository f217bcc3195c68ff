#include "hdf5_types.hpp"

namespace remesh::native {
namespace {

// A 16-bit float: the sign on top, then the exponent, then the mantissa.
h5::Type half_type(std::size_t exponent_bits, std::size_t bias) {
  h5::Type type = h5::copy_type(H5T_IEEE_F32LE);
  const std::size_t mantissa_bits = 15 - exponent_bits;
  h5::set_fields(type, /*sign=*/15, /*exponent=*/mantissa_bits, exponent_bits, mantissa_bits);
  h5::set_size(type, 2);
  h5::set_exponent_bias(type, bias);
  return type;
}

// h5py takes a compound of r and i for a complex number.
h5::Type complex_type() {
  h5::Type type = h5::create_compound(8);
  h5::insert(type, "r", 0, H5T_IEEE_F32LE);
  h5::insert(type, "i", 4, H5T_IEEE_F32LE);
  return type;
}

}  // namespace

h5::Type hdf5_type(DType dtype) {
  switch (dtype) {
    case DType::i8:
      return h5::copy_type(H5T_STD_I8LE);
    case DType::i16:
      return h5::copy_type(H5T_STD_I16LE);
    case DType::u16:
      return h5::copy_type(H5T_STD_U16LE);
    case DType::f16:
      return half_type(/*exponent_bits=*/5, /*bias=*/15);
    case DType::bf16:
      return half_type(/*exponent_bits=*/8, /*bias=*/127);
    case DType::i32:
      return h5::copy_type(H5T_STD_I32LE);
    case DType::u32:
      return h5::copy_type(H5T_STD_U32LE);
    case DType::f32:
      return h5::copy_type(H5T_IEEE_F32LE);
    case DType::c64:
      return complex_type();
    case DType::f64:
      return h5::copy_type(H5T_IEEE_F64LE);
    case DType::i64:
      return h5::copy_type(H5T_STD_I64LE);
    case DType::u64:
      return h5::copy_type(H5T_STD_U64LE);
    default:
      return h5::copy_type(H5T_STD_U8LE);
  }
}

}  // namespace remesh::native
