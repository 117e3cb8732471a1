// Bytes that begin and end controls in a terminal's output (ECMA-48).
#pragma once

namespace pi_agent::control {

constexpr unsigned char bel = 0x07;
constexpr unsigned char can = 0x18;
constexpr unsigned char sub = 0x1a;
constexpr unsigned char esc = 0x1b;
constexpr unsigned char utf8_lead = 0xc2; // of U+0080 to U+00BF, the 8-bit controls among them: each means ESC and a letter
constexpr unsigned char dcs = 0x90;
constexpr unsigned char st = 0x9c;
constexpr unsigned char osc = 0x9d;

} // namespace pi_agent::control
