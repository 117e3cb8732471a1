// How every command shows rows, sizes, durations and times to people, and its answer to programs.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

constexpr int answer_version = 1; // of the JSON that commands print: a change that breaks its readers gets another

using Row = std::vector<std::string>;

// Columns of equal width, two spaces apart, the last one as long as it is; an empty value is shown as "-". Values are
// harmless already (common/base/escape.hpp).
std::string to_table(const Row &header, const std::vector<Row> &rows);

// 512, 1.5K, 20M, 3.2G, of 1024 each; and 0.25s, 12s, 3m 20s, 2h 5m, 3d 4h. Empty for what is not known.
std::string to_size(const std::optional<std::uint64_t> &bytes);
std::string to_duration(const std::optional<std::uint64_t> &microseconds);

// Microseconds since 1970: "2026-03-01 12:00:00" where this host is, for people, and "2026-03-01T12:00:00.000000Z" for programs.
std::string to_local_time(std::uint64_t microseconds);
std::string to_utc_time(std::uint64_t microseconds);

// What an option says: "2026-03-01", with " 12:00" or " 12:00:30", "today", "yesterday", "2h" (s, m, h or d) for so long ago, or "@" and
// seconds since 1970. Microseconds since 1970; throws Failure(usage).
std::uint64_t parse_time(std::string_view text, std::uint64_t now);
std::uint64_t now_microseconds();

// Prints `answer`, an object, with the version of its form.
void print_json(nlohmann::json answer, std::ostream &out);
// A number that may be unknown: null then.
nlohmann::json number_or_null(const std::optional<std::uint64_t> &number);
// Text that may be unknown, which is empty: null then.
nlohmann::json text_or_null(const std::string &text);

} // namespace pi_agent
