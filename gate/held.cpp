// How much all relays hold beyond a piece each is counted here, by the memory that it takes.
#include "gate/held.hpp"

#include <algorithm>

namespace pi_agent {

namespace {

std::size_t beyond_pieces = 0; // of all relays, bytes

} // namespace

Held::~Held()
{
    beyond_pieces -= beyond_;
}

std::size_t Held::room()
{
    return beyond_pieces + (most_at_once - one_piece) <= most_beyond ? most_at_once : one_piece;
}

void Held::append(std::string_view bytes)
{
    bytes_.append(bytes);
    count();
}

void Held::replace(std::string bytes)
{
    bytes_.swap(bytes); // an assignment might keep the memory
    taken_ = 0;
    count();
}

void Held::take(std::size_t count)
{
    taken_ += count;
    if (is_empty()) replace({});
}

void Held::count()
{
    beyond_pieces -= beyond_;
    beyond_ = std::max(bytes_.capacity(), one_piece) - one_piece;
    beyond_pieces += beyond_;
}

} // namespace pi_agent
