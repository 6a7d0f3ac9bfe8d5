#include "support/hash.h"

#include <array>

namespace harpe {

std::string hash_text(std::string_view text) {
  __extension__ using Word = unsigned __int128;
  constexpr Word kPrime = (Word{1} << 88) + 0x13b;
  Word hash = (Word{0x6c62272e07bb0142ULL} << 64) + 0x62b821756295c58dULL;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= kPrime;
  }
  constexpr std::array kDigits = {'0', '1', '2', '3', '4', '5', '6', '7',
                                  '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};
  std::string out;
  for (int shift = 124; shift >= 0; shift -= 4) {
    out += kDigits[static_cast<std::size_t>((hash >> shift) & 0xf)];
  }
  return out;
}

}  // namespace harpe
