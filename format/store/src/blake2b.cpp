#include "remesh/store/blake2b.hpp"

#include <sodium.h>

#include "sodium_ready.hpp"

namespace remesh {

struct Blake2b::State {
  ::crypto_generichash_state hashing{};
};

Blake2b::Blake2b() : state_(std::make_unique<State>()) {
  native::sodium_ready();
  ::crypto_generichash_init(&state_->hashing, nullptr, 0, sizeof(Hash));
}

Blake2b::~Blake2b() = default;
Blake2b::Blake2b(Blake2b&&) noexcept = default;
Blake2b& Blake2b::operator=(Blake2b&&) noexcept = default;

void Blake2b::add(std::span<const std::byte> bytes) noexcept {
  ::crypto_generichash_update(&state_->hashing,
                              reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

Blake2b::Hash Blake2b::end() noexcept {
  Hash hash{};
  ::crypto_generichash_final(&state_->hashing, reinterpret_cast<unsigned char*>(hash.data()),
                             hash.size());
  return hash;
}

}  // namespace remesh
