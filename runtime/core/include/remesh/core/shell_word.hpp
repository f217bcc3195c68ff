#pragma once

#include <string>
#include <string_view>

namespace remesh {

/// `text` as one word of a POSIX shell, for commands that a message tells people to type. It stays
/// as it is where no character of it means anything to a shell (letters, digits and "_./:=@%+,-");
/// otherwise it stands in single quotes, and each single quote of its own is '\''.
std::string shell_word(std::string_view text);

}  // namespace remesh
