// The outcome table of the config sync, every cell: runner/as_agent/writer.hpp
#include "runner/as_agent/writer.hpp"

#include <array>
#include <doctest/doctest.h>
#include <string>

using namespace pi_agent;

namespace sync_decision_test {

namespace {

// One line for a class, whether the manifest knows the path, and the host's state; then what becomes of it when inside there is nothing,
// what was synced, something else.
struct Row {
    FileClass file_class;
    bool known;
    HostState host;
    std::string absent, as_synced, other;
};

std::string name_of(SyncAction action)
{
    constexpr std::array names = {"leave", "copy", "adopt", "remove", "forget"};
    return names.at(static_cast<std::size_t>(action));
}

constexpr auto gone = HostState::absent;
constexpr auto same = HostState::unchanged;
constexpr auto changed = HostState::changed;

// "-": cannot be, for what is not known was not synced.
const std::array<Row, 25> table = {{
    //                  known                  absent    as synced other
    {FileClass::mirror, false, gone, /*     */ "leave", "-", "leave"},
    {FileClass::mirror, false, changed, /*  */ "copy", "-", "copy"},
    {FileClass::mirror, true, gone, /*      */ "remove", "remove", "remove"},
    {FileClass::mirror, true, same, /*      */ "copy", "leave", "copy"},
    {FileClass::mirror, true, changed, /*   */ "copy", "copy", "copy"},
    {FileClass::seed, false, gone, /*       */ "leave", "-", "leave"},
    {FileClass::seed, false, changed, /*    */ "copy", "-", "adopt"},
    {FileClass::seed, true, gone, /*        */ "remove", "remove", "forget"},
    {FileClass::seed, true, same, /*        */ "copy", "leave", "leave"},
    {FileClass::seed, true, changed, /*     */ "copy", "copy", "copy"},
    {FileClass::once, false, gone, /*       */ "leave", "-", "leave"},
    {FileClass::once, false, changed, /*    */ "copy", "-", "leave"},
    {FileClass::once, true, gone, /*        */ "forget", "remove", "leave"},
    {FileClass::once, true, same, /*        */ "copy", "leave", "leave"},
    {FileClass::once, true, changed, /*     */ "copy", "copy", "leave"},
    {FileClass::agent, false, gone, /*      */ "leave", "-", "leave"},
    {FileClass::agent, false, changed, /*   */ "leave", "-", "leave"},
    {FileClass::agent, true, gone, /*       */ "forget", "forget", "forget"},
    {FileClass::agent, true, same, /*       */ "forget", "forget", "forget"},
    {FileClass::agent, true, changed, /*    */ "forget", "forget", "forget"},
    {FileClass::never, false, gone, /*      */ "leave", "-", "leave"},
    {FileClass::never, false, changed, /*   */ "leave", "-", "leave"},
    {FileClass::never, true, gone, /*       */ "remove", "remove", "remove"},
    {FileClass::never, true, same, /*       */ "remove", "remove", "remove"},
    {FileClass::never, true, changed, /*    */ "remove", "remove", "remove"},
}};

} // namespace

TEST_CASE("every cell of the outcome table is as the documentation has it")
{
    for (const auto &row : table) {
        CAPTURE(to_string(row.file_class));
        CAPTURE(row.known);
        CAPTURE(static_cast<int>(row.host));
        CHECK(name_of(decide_file(row.file_class, row.known, row.host, InsideState::absent)) == row.absent);
        CHECK(name_of(decide_file(row.file_class, row.known, row.host, InsideState::other)) == row.other);
        if (row.as_synced != "-") CHECK(name_of(decide_file(row.file_class, row.known, row.host, InsideState::as_synced)) == row.as_synced);
    }
}

} // namespace sync_decision_test
